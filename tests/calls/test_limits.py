"""Rate limits, cached answers, places and the cap on output, through the host."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from standards_mcp import Plugin, Tool, ToolError, ToolResult, hookimpl
from standards_mcp.calls.steps.output import BYTES_PER_TOKEN, capped, tokens
from standards_mcp.calls.steps.rate_limits import RateLimits
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]


class Answer(TypedDict):
    results: list[str]
    message: str


class Counter:
    """A tool that tells how often it ran and how many ran at a time."""

    def __init__(self, seconds: float = 0) -> None:
        self.calls = self.running = self.most = 0
        self.seconds = seconds
        self.fails = False

    async def __call__(self, text: str = "") -> dict[str, Any]:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await anyio.sleep(self.seconds)
        finally:
            self.running -= 1
        if self.fails:
            raise ToolError("It failed.")
        return {"text": text, "call": self.calls}


@pytest.fixture
def serve(make_host: MakeHost) -> Callable[..., Host]:
    """Return a function that makes a host of one read-only tool, ``count``."""

    def make(counter: Counter, /, other: Counter | None = None, **override: Any) -> Host:
        async def count(text: str = "") -> dict[str, Any]:
            return await counter(text)

        async def second(text: str = "") -> dict[str, Any]:
            return await (other or counter)(text)

        tools = [
            Tool(name="count", function=count, description="Count.", read_only=True),
            Tool(name="second", function=second, description="Count.", read_only=True),
        ]
        plugin = type("Made", (Plugin,), {"register_tools": hookimpl(lambda _: tools)})
        table = override.pop("tools", {}) | {"overrides": {"count": override}}
        return make_host({"acme": plugin}, tools=table)

    return make


def error_type(result: ToolResult) -> str:
    return (result.structured or {}).get("error_type", "")


async def all_of(host: Host, count: int, **arguments: Any) -> list[ToolResult]:
    return await asyncio.gather(*(host.call_tool("count", arguments) for _ in range(count)))


# Rates


async def test_a_tool_is_called_so_often_and_then_says_how_long_to_wait(serve: Any):
    counter = Counter()
    host = serve(counter, rate_limit="2/hour")
    results = [await host.call_tool("count", {}) for _ in range(3)]
    assert [result.is_error for result in results] == [False, False, True]
    assert error_type(results[2]) == "rate_limited"
    message = results[2].structured["message"]
    assert message.startswith("count is limited to 2/hour. Try again in ")
    assert 3500 < int(message.split()[-2]) <= 3600
    assert counter.calls == 2
    assert not (await host.call_tool("second", {})).is_error


async def test_a_limit_of_all_tools_is_counted_for_each(serve: Any):
    host = serve(Counter(), tools={"rate_limit": "1/day"})
    for name in ("count", "second"):
        assert not (await host.call_tool(name, {})).is_error
        assert error_type(await host.call_tool(name, {})) == "rate_limited"


async def test_arguments_that_are_refused_do_not_count(serve: Any):
    host = serve(Counter(), rate_limit="1/hour")
    assert error_type(await host.call_tool("count", {"wrong": 1})) == "invalid_input"
    assert not (await host.call_tool("count", {})).is_error


# Cached answers


async def test_an_answer_is_given_again_for_the_same_arguments(serve: Any):
    counter = Counter()
    host = serve(counter, cache_ttl=60)
    answers = [(await host.call_tool("count", {"text": text})).structured for text in "aab"]
    assert answers == [{"text": "a", "call": 1}, {"text": "a", "call": 1}, {"text": "b", "call": 2}]


async def test_a_default_that_is_given_is_the_same_call(serve: Any):
    counter = Counter()
    host = serve(counter, cache_ttl=60)
    await host.call_tool("count", {})
    await host.call_tool("count", {"text": ""})
    assert counter.calls == 1


async def test_an_answer_is_forgotten_in_time(serve: Any):
    counter = Counter()
    host = serve(counter, cache_ttl=0.05)
    await host.call_tool("count", {})
    await anyio.sleep(0.1)
    await host.call_tool("count", {})
    assert counter.calls == 2


async def test_failures_are_not_kept(serve: Any):
    counter = Counter()
    host = serve(counter, cache_ttl=60)
    counter.fails = True
    assert (await host.call_tool("count", {})).is_error
    counter.fails = False
    assert not (await host.call_tool("count", {})).is_error


async def test_equal_calls_at_one_time_are_one_call(serve: Any):
    counter = Counter(seconds=0.05)
    results = await all_of(serve(counter, cache_ttl=60), 10)
    assert [result.structured for result in results] == [{"text": "", "call": 1}] * 10
    assert counter.calls == 1


async def test_equal_calls_at_one_time_fail_as_one_call(serve: Any):
    counter = Counter(seconds=0.05)
    counter.fails = True
    host = serve(counter, cache_ttl=60)
    assert [error_type(result) for result in await all_of(host, 10)] == ["tool_error"] * 10
    assert counter.calls == 1
    assert (await host.call_tool("count", {})).is_error
    assert counter.calls == 2, "a failure is not kept"


async def test_who_waits_for_a_cancelled_call_calls_itself(serve: Any):
    counter = Counter(seconds=0.2)
    host = serve(counter, cache_ttl=60)
    first = asyncio.ensure_future(host.call_tool("count", {}))
    await anyio.sleep(0.05)
    second = asyncio.ensure_future(host.call_tool("count", {}))
    await anyio.sleep(0.05)
    first.cancel()
    assert (await second).structured == {"text": "", "call": 2}


async def test_a_cached_answer_counts_against_no_limit(serve: Any):
    host = serve(Counter(), cache_ttl=60, rate_limit="1/hour")
    results = [await host.call_tool("count", {}) for _ in range(3)]
    assert not any(result.is_error for result in results)


# Places


async def test_so_many_calls_of_a_tool_run_at_a_time(serve: Any):
    counter, other = Counter(seconds=0.02), Counter(seconds=0.02)
    host = serve(counter, other, concurrency=2)
    results = await asyncio.gather(*(host.call_tool(name, {}) for name in ["count", "second"] * 6))
    assert not any(result.is_error for result in results)
    assert counter.most == 2
    assert other.most == 6


async def test_so_many_calls_of_a_plugin_run_at_a_time(serve: Any):
    counter = Counter(seconds=0.02)
    host = serve(counter, tools={"concurrency": 3})
    await asyncio.gather(*(host.call_tool(name, {}) for name in ["count", "second"] * 6))
    assert counter.most == 3


async def test_waiting_for_a_place_counts_against_the_deadline(serve: Any):
    host = serve(Counter(seconds=30), concurrency=1, timeout=0.1)
    started = time.monotonic()
    results = await all_of(host, 3)
    assert [error_type(result) for result in results] == ["timeout"] * 3
    assert time.monotonic() - started < 20


async def test_places_are_free_again_after_a_timeout(serve: Any):
    counter = Counter(seconds=30)
    host = serve(counter, concurrency=1, timeout=0.05)
    await host.call_tool("count", {})
    counter.seconds = 0
    assert not (await host.call_tool("count", {})).is_error


# Output


@given(st.text(), st.integers(1, 50))
def test_a_long_text_is_cut_and_says_so(text: str, limit: int):
    result = capped(ToolResult(text=text), limit)
    assert text.startswith(result.text)
    assert tokens(result.text) <= limit
    assert bool(result.notes) == (tokens(text) > limit)


@given(st.lists(st.text()), st.integers(20, 200))
def test_a_long_list_loses_its_last_items_and_says_so(items: list[str], limit: int):
    structured = {"success": True, "results": items, "message": "Found"}
    text = json.dumps(structured, ensure_ascii=False)
    result = capped(ToolResult(text=text, structured=structured), limit)
    if tokens(text) <= limit:
        assert result.structured == structured
    elif not result.is_error:
        assert result.structured is not None
        kept = result.structured["results"]
        assert items[: len(kept)] == kept
        assert json.loads(result.text) == result.structured
        assert f"the first {len(kept)} of {len(items)}" in result.notes[0]
    else:
        assert error_type(result) == "too_large"


def test_what_cannot_be_cut_is_an_error_that_says_what_to_do():
    structured = {"text": "x" * 100}
    result = capped(ToolResult(text="x" * 100, structured=structured), 10)
    assert error_type(result) == "too_large"
    assert "raise its max_output_tokens in the configuration" in result.text


async def test_an_answer_of_the_host_is_cut(make_host: MakeHost):
    async def long() -> Answer:
        return {"results": ["standard"] * 1000, "message": "Found"}

    plugin = type(
        "Made",
        (Plugin,),
        {"register_tools": hookimpl(lambda _: [Tool(name="l", function=long, description="L.")])},
    )
    host = make_host({"acme": plugin}, tools={"max_output_tokens": 500})
    result = await host.call_tool("l", {})
    assert 0 < len(result.structured["results"]) < 1000
    assert tokens(result.text) <= 500 + BYTES_PER_TOKEN
    assert "Ask for less" in result.notes[0]


async def test_callers_are_forgotten_before_they_fill_the_memory():
    rates = RateLimits()
    assert await rates.wait("1/day", "count", "first") == 0
    for number in range(9_999):
        await rates.wait("1/day", "count", str(number))
    assert await rates.wait("1/day", "count", "first") > 0, "who still calls is not forgotten"
    for number in range(20_000):
        await rates.wait("1/day", "count", f"more {number}")
    assert len(rates._own) == 10_000
