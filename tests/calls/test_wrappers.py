"""What plugins put around every tool call, and that none of them can silence the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from support.hosts import MakeHost
from support.waiting import WAIT, let_time_pass, until

from standards_mcp import Plugin, Tool, ToolCall, ToolError, ToolHandler, ToolResult, hookimpl
from standards_mcp.config.timing import Timing
from standards_mcp.plugin import Plugin as AnyPlugin

pytestmark = pytest.mark.anyio
Wrapper = Callable[[ToolHandler, ToolCall], Awaitable[Any]]


class WorkPlugin(Plugin):
    calls = 0

    @hookimpl
    def register_tools(self):
        async def work(
            text: str = "", *, hangs: bool = False, waits: bool = False
        ) -> dict[str, str]:
            WorkPlugin.calls += 1
            if hangs:
                let_time_pass(1.5 * WAIT)
            if hangs or waits:
                await anyio.sleep_forever()
            return {"text": text}

        return [Tool(name="work", description="Work.", function=work, read_only=True, timeout=WAIT)]


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    WorkPlugin.calls = 0


def wrapping(wrapper: Wrapper) -> type[AnyPlugin]:
    class WrapPlugin(Plugin):
        @hookimpl
        def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
            async def handle(call: ToolCall) -> ToolResult:
                return await wrapper(call_next, call)

            return handle

    return WrapPlugin


def appending(letter: str) -> Wrapper:
    async def wrapper(call_next: ToolHandler, call: ToolCall) -> ToolResult:
        text = call.arguments.get("text", "") + letter
        result = await call_next(replace(call, arguments={**call.arguments, "text": text}))
        return replace(result, notes=(*result.notes, letter))

    return wrapper


async def crash_before(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    del call_next, call
    raise RuntimeError("a secret")


async def crash_after(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    await call_next(call)
    raise SystemExit(3)


async def return_nothing(call_next: ToolHandler, call: ToolCall) -> None:
    await call_next(call)


async def return_what_cannot_be_sent(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    return replace(await call_next(call), structured={"a": object()})


async def call_twice(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    await call_next(call)
    return await call_next(call)


async def call_another(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    del call
    fields = {"plugin": "x", "arguments": {}, "read_only": True, "caller": "x"}
    return await call_next(ToolCall(tool="other", **fields))


async def escape(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    del call_next, call
    raise asyncio.CancelledError


async def refuse(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    del call_next
    raise ToolError(f"{call.tool} of {call.plugin} is not for {call.caller}")


async def wait_before(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    await anyio.sleep_forever()
    return await call_next(call)


async def hang_before(call_next: ToolHandler, call: ToolCall) -> ToolResult:
    let_time_pass()
    return await wait_before(call_next, call)


PATIENT = Timing(wrappers=WAIT)


async def test_wrappers_see_every_call_the_first_plugin_outermost(make_host: MakeHost):
    plugins = {"a": wrapping(appending("a")), "b": wrapping(appending("b")), "work": WorkPlugin}
    result = await make_host(plugins).call_tool("work", {"text": "-"})
    assert result.structured == {"text": "-ab"}
    assert result.notes == ("b", "a")


async def test_a_wrapper_sees_refusals_as_results(make_host: MakeHost):
    seen: list[str] = []

    async def look(call_next: ToolHandler, call: ToolCall) -> ToolResult:
        result = await call_next(call)
        seen.append((result.structured or {})["error_type"])
        return result

    host = make_host({"look": wrapping(look), "work": WorkPlugin}, timing=PATIENT)
    for arguments in ({"texd": "x"}, {"hangs": True}):
        assert (await host.call_tool("work", arguments)).is_error
    assert seen == ["invalid_input", "timeout"]


async def test_a_wrapper_may_refuse_a_call(make_host: MakeHost):
    host = make_host({"guard": wrapping(refuse), "work": WorkPlugin})
    result = await host.call_tool("work", {})
    assert result.is_error
    assert result.structured is not None
    assert result.structured["message"] == "work of work is not for local"
    assert WorkPlugin.calls == 0


@pytest.mark.parametrize(
    "wrapper",
    [
        crash_before,
        crash_after,
        return_nothing,
        return_what_cannot_be_sent,
        call_twice,
        call_another,
        escape,
    ],
)
async def test_a_wrapper_that_fails_is_passed_by_and_no_tool_is_called_twice(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture, wrapper: Wrapper
):
    plugins = {"bad": wrapping(wrapper), "good": wrapping(appending("g")), "work": WorkPlugin}
    host = make_host(plugins, timing=PATIENT)
    for number in (1, 2):
        result = await host.call_tool("work", {"text": "-"})
        assert (result.structured, result.is_error) == ({"text": "-g"}, False)
        assert WorkPlugin.calls == number
    (first, *_) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert first.getMessage() == "a wrapper of tool calls crashed"
    assert first.plugin == "bad"


@pytest.mark.parametrize("wrapper", [crash_before, crash_after, return_nothing])
async def test_where_its_plugin_is_required_the_call_fails_instead(
    make_host: MakeHost, wrapper: Wrapper
):
    plugins = {"audit": wrapping(wrapper), "work": WorkPlugin}
    host = make_host(plugins, plugins={"audit": {"required": True}})
    result = await host.call_tool("work", {})
    assert result.is_error
    assert "plugin 'audit', which wraps every call, failed" in result.text
    assert "secret" not in result.text


@pytest.mark.parametrize(
    ("good", "seconds"),
    [("a_good", 2.5 * WAIT), ("good", 10 * WAIT)],  # one that is outside has WAIT more
    ids=["the inner one", "the outer one"],
)
@pytest.mark.parametrize("answered", [False, True])
async def test_a_wrapper_that_hangs_costs_one_call_at_most(
    make_host: MakeHost, good: str, seconds: float, *, answered: bool
):
    async def hang(call_next: ToolHandler, call: ToolCall) -> ToolResult:
        if answered:
            await call_next(call)
        let_time_pass(seconds)
        return await wait_before(call_next, call)

    wrappers = {"bad": wrapping(hang), good: wrapping(appending("g"))}
    host = make_host(dict(sorted(wrappers.items())) | {"work": WorkPlugin}, timing=PATIENT)
    first = await host.call_tool("work", {"text": "-"})
    assert first.is_error is not answered
    if not answered:
        assert "plugin 'bad', which wraps every call, does not answer. Try again." in first.text
    second = await host.call_tool("work", {"text": "-"})
    assert second.structured == {"text": "-g"}


async def test_a_required_wrapper_that_hangs_is_never_left_out(make_host: MakeHost):
    plugins = {"audit": wrapping(hang_before), "work": WorkPlugin}
    host = make_host(plugins, timing=PATIENT, plugins={"audit": {"required": True}})
    for _ in range(2):
        result = await host.call_tool("work", {"text": "-"})
        assert "which wraps every call, does not answer. Restart the server." in result.text
    assert WorkPlugin.calls == 0


async def test_neither_a_slow_tool_nor_a_client_that_leaves_is_a_fault_of_wrappers(
    make_host: MakeHost,
):
    plugins = {"good": wrapping(appending("g")), "work": WorkPlugin}
    host = make_host(plugins, timing=PATIENT)
    assert "work did not answer within 90 s" in (await host.call_tool("work", {"hangs": True})).text
    task = asyncio.ensure_future(host.call_tool("work", {"waits": True}))
    await until(lambda: WorkPlugin.calls == 2)
    task.cancel()
    await asyncio.wait([task])
    assert (await host.call_tool("work", {"text": "-"})).structured == {"text": "-g"}


async def test_the_answer_of_a_wrapper_is_capped_as_any_other(make_host: MakeHost):
    async def swell(call_next: ToolHandler, call: ToolCall) -> ToolResult:
        return replace(await call_next(call), text="x" * 4000, structured=None)

    host = make_host({"big": wrapping(swell), "work": WorkPlugin}, tools={"max_output_tokens": 100})
    result = await host.call_tool("work", {})
    assert len(result.text) == 400
