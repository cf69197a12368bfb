"""Progress: clients hear the first reports, then the newest, and the last before the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from support.hosts import MakeHost, OpenClient, plugin_with

from standards_mcp import CallContext, Plugin, Tool

pytestmark = pytest.mark.anyio
Report = tuple[float, float | None, str | None]


def with_tool(function: Callable[..., Any]) -> type[Plugin[Any]]:
    return plugin_with(Tool(name="work", description="Work.", function=function))


@asynccontextmanager
async def calling(client: Client) -> AsyncGenerator[list[Report]]:
    """Call the tool, and give what was heard of it."""
    heard: list[Report] = []

    async def hear(*report: Any) -> None:
        heard.append(report)

    result = await client.call_tool("work", {}, progress_callback=hear)
    assert result.content[0].text == "done"
    yield heard


@pytest.mark.parametrize(("count", "most"), [(20, 20), (10_000, 1000)])
async def test_few_reports_are_all_sent_and_of_many_the_last_is_one_of_them(
    make_host: MakeHost, open_client: OpenClient, count: int, most: int
):
    async def work(context: CallContext) -> str:
        for done in range(count):
            await context.report_progress(done, count, f"at {done}")
        return "done"

    host = make_host({"work": with_tool(work)})
    async with open_client(host) as client, calling(client) as heard:
        assert heard[-1] == (count - 1, count, f"at {count - 1}")
        done = [report[0] for report in heard]
        assert done == (list(range(count)) if count <= most else sorted(set(done)))
        assert len(heard) <= most


async def test_a_report_is_not_held_back_until_the_answer(
    make_host: MakeHost, open_client: OpenClient
):
    last = anyio.Event()

    async def work(context: CallContext) -> str:
        for done in range(1001):
            await context.report_progress(done)
        await last.wait()
        return "done"

    async def hear(done: float, _: float | None, __: str | None) -> None:
        if done == 1000:
            last.set()

    async with open_client(make_host({"work": with_tool(work)})) as client:
        await client.call_tool("work", {}, progress_callback=hear)
    assert last.is_set()


async def test_invalid_progress_is_dropped_and_logged_once(
    make_host: MakeHost, open_client: OpenClient, caplog: pytest.LogCaptureFixture
):
    wrong: list[tuple[Any, ...]] = [
        (object(),),
        ("x", 5),
        (float("nan"), 5),
        (1, float("inf")),
        (10**400,),
        (1, 5, "half \ud83d"),
        (1, 5, b"bytes\xff"),
    ]

    async def work(context: CallContext) -> str:
        await context.report_progress(1, 2, "right\x1b")
        for report in wrong:
            await context.report_progress(*report)
        return "done"

    host = make_host({"work": with_tool(work)})
    async with open_client(host) as client, calling(client) as heard:
        assert heard == [(1, 2, "right\\u001b")]
    lines = [each for each in caplog.records if each.getMessage() == "progress was dropped"]
    assert [vars(line)["tool"] for line in lines] == ["work"]


async def test_a_tool_that_does_nothing_but_report_can_be_stopped(
    make_host: MakeHost, open_client: OpenClient
):
    async def work(context: CallContext) -> str:
        while True:
            await context.report_progress(1)

    async with open_client(make_host({"work": with_tool(work)}, tools={"timeout": 0.2})) as client:
        result = await client.call_tool("work", {})
    assert result.structured_content["error_type"] == "timeout"
