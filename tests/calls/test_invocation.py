"""Plain functions as tools: which calls wait for a thread, and which are refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from support.hosts import MakeHost, plugin_with, until_answered
from support.waiting import let_time_pass, until

from standards_mcp import Tool, ToolResult
from standards_mcp.calls.pipeline import THREADS_PER_PLUGIN
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return the event that functions hang on; it is set at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def hanging() -> list[bool]:
    """Return a list with an item for each function that hangs."""
    return []


@pytest.fixture
def host(make_host: MakeHost, release: threading.Event, hanging: list[bool]) -> Host:
    """Return a host of two plugins, of which the first has tools that hang."""

    async def later() -> str:
        await anyio.lowlevel.checkpoint()
        return "done"

    def hang() -> None:
        hanging.append(True)
        release.wait()

    def tools_of(prefix: str) -> list[Tool]:
        return [
            Tool(name=f"{prefix}.hang", description="Hang.", function=hang),
            Tool(name=f"{prefix}.work", description="Work.", function=lambda: "done"),
            Tool(name=f"{prefix}.later", description="Do it later.", function=later),
            Tool(name=f"{prefix}.nap", description="Nap.", function=lambda: time.sleep(0.1)),
        ]

    return make_host({name: plugin_with(*tools_of(name)) for name in ("sick", "well")})


async def call_at_once(host: Host, tool: str, count: int) -> list[ToolResult]:
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await host.call_tool(tool, {}))

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(call)
    return results


async def give_up(host: Host, hanging: list[bool], count: int) -> None:
    """Let calls of a plugin hang, each in a thread, until their time is up."""

    async def hang() -> None:
        hung = await call_at_once(host, "sick.hang", count)
        assert error_types(hung) == {"timeout"}

    async with anyio.create_task_group() as group:
        group.start_soon(hang)
        await until(lambda: len(hanging) == count)
        let_time_pass()


def error_types(results: list[ToolResult]) -> set[str | None]:
    return {(result.structured or {}).get("error_type") for result in results}


async def test_a_plugin_whose_threads_all_hang_is_refused_and_the_others_are_served(
    host: Host, hanging: list[bool]
):
    await give_up(host, hanging, THREADS_PER_PLUGIN)
    refused = await host.call_tool("sick.work", {})
    assert refused.structured is not None
    assert refused.structured["error_type"] == "internal_error"
    assert refused.structured["message"].startswith(
        f"{THREADS_PER_PLUGIN} earlier calls of plugin 'sick' are still running"
    )
    assert (await host.call_tool("sick.later", {})).text == "done"
    assert (await host.call_tool("well.work", {})).text == "done"


async def test_a_plugin_with_one_thread_left_is_served(host: Host, hanging: list[bool]):
    await give_up(host, hanging, THREADS_PER_PLUGIN - 1)
    assert [item.text for item in await call_at_once(host, "sick.work", 5)] == ["done"] * 5


async def test_a_plugin_is_served_again_once_its_calls_have_ended(
    host: Host, release: threading.Event, hanging: list[bool]
):
    await give_up(host, hanging, THREADS_PER_PLUGIN)
    release.set()
    await until_answered(host, "sick.work")
    napped = await call_at_once(host, "sick.nap", THREADS_PER_PLUGIN)
    assert error_types(napped) == {None}, "all slots are free again"


async def test_calls_wait_while_all_threads_are_busy(host: Host):
    assert error_types(await call_at_once(host, "well.nap", 2 * THREADS_PER_PLUGIN)) == {None}
