"""Rate limits, cached answers, slots and the cap on output, through the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any

import anyio
import pydantic_core
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator
from support.hosts import MakeHost, error_type, plugin_with
from support.waiting import until

from standards_mcp import (
    CallContext,
    Plugin,
    Tool,
    ToolError,
    ToolResult,
    tool,
)
from standards_mcp._utils.text import tokens
from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.calls.limits import RateLimits
from standards_mcp.calls.output import capped
from standards_mcp.errors import NotServedError, UnknownToolError
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio


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
        table = override.pop("tools", {}) | {"overrides": {"count": override}}
        return make_host({"acme": plugin_with(*tools)}, tools=table)

    return make


async def all_of(host: Host, count: int, **arguments: Any) -> list[ToolResult]:
    return await asyncio.gather(*(host.call_tool("count", arguments) for _ in range(count)))


# Rates


async def test_a_tool_is_called_so_often_and_then_says_how_long_to_wait(serve: Any):
    counter = Counter()
    host = serve(counter, rate_limit="2/hour")
    results = await all_of(host, 3)
    assert [result.is_error for result in results] == [False, False, True]
    assert error_type(results[2]) == "rate_limited"
    message = results[2].structured["message"]
    assert message.startswith("count is limited to 2/hour. Try again in ")
    assert 3500 < int(message.split()[-2]) <= 3600
    assert counter.calls == 2
    assert not (await host.call_tool("second", {})).is_error


async def test_beyond_the_limit_no_call_with_many_values_is_validated(make_host: MakeHost):
    validated: list[object] = []

    def note(value: object) -> object:
        validated.append(value)
        return value

    async def total(numbers: list[int]) -> int:
        return sum(numbers)

    total.__annotations__["numbers"] = list[Annotated[int, BeforeValidator(note)]]
    plugin = plugin_with(Tool(name="total", function=total, description="Add numbers."))
    host = make_host({"acme": plugin}, tools={"overrides": {"total": {"rate_limit": "2/hour"}}})
    assert not (await host.call_tool("total", {"numbers": [1] * 300})).is_error, "counted once"
    wrong = {"numbers": ["x"] * 300}
    assert error_type(await host.call_tool("total", wrong)) == "invalid_input"
    validated.clear()
    assert error_type(await host.call_tool("total", wrong)) == "rate_limited"
    assert not validated


async def test_a_limit_of_all_tools_is_counted_for_each(serve: Any):
    host = serve(Counter(), tools={"rate_limit": "1/day"})
    for name in ("count", "second"):
        assert not (await host.call_tool(name, {})).is_error
        assert error_type(await host.call_tool(name, {})) == "rate_limited"


async def test_calls_of_unknown_tools_count_together(serve: Any):
    host = serve(Counter(), tools={"rate_limit": "2/hour"})
    for name in ("missing", "absent"):
        with pytest.raises(UnknownToolError):
            await host.call_tool(name, {})
    refused = await host.call_tool("gone", {})
    assert error_type(refused) == "rate_limited"
    assert refused.structured["retry_after"] > 3500
    assert not (await host.call_tool("count", {})).is_error


# Arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {f"key{index}": index for index in range(11)},
        {"text": list(range(11))},
        {"text": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]},
        {"text": {"a": [{"b": 1, "c": 2}] * 5}},
    ],
)
async def test_arguments_have_a_limited_number_of_values(serve: Any, arguments: dict[str, Any]):
    counter = Counter()
    host = serve(counter, tools={"max_argument_values": 10, "rate_limit": "1/hour"})
    result = await host.call_tool("count", arguments)
    assert error_type(result) == "invalid_input"
    assert result.structured["message"] == (
        "the arguments have more than 10 values; send fewer in one call, or let the administrator"
        " raise max_argument_values in [tools]"
    )
    assert error_type(await host.call_tool("count", {})) == "rate_limited"
    assert counter.calls == 0


@pytest.mark.parametrize("text", ["one, two, " * 1000, json.dumps([*range(1000)]), "{,,,,}"])
async def test_a_text_is_one_value_however_long(serve: Any, text: str):
    host = serve(Counter(), tools={"max_argument_values": 1})
    assert not (await host.call_tool("count", {"text": text})).is_error


class RowsPlugin(Plugin):
    """A tool with a list and texts."""

    calls = 0

    @tool(name="rows.add")
    def add(self, rows: list[int] | None = None, notes: list[str] | None = None) -> str:
        """Add rows."""
        self.calls += 1
        return f"{len(rows or ())} {len(notes or ())}"


async def test_the_values_of_a_list_that_was_sent_as_text_count(make_host: MakeHost):
    host = make_host({"rows": RowsPlugin}, tools={"max_argument_values": 20})
    few, many = (json.dumps(list(range(count))) for count in (9, 30))
    nested = "[" * 30 + "]" * 30
    assert (await host.call_tool("rows_add", {"rows": few, "notes": [many]})).text == "9 1"
    for text in (many, f" \n{many}", nested):
        refused = await host.call_tool("rows_add", {"rows": text})
        assert error_type(refused) == "invalid_input"
        assert "the arguments have more than 20 values" in refused.structured["message"]


async def test_a_long_unknown_name_is_cut_in_the_message(serve: Any):
    host, name = serve(Counter()), "x" * 1_000_000
    result = await host.call_tool("count", {name: 1})
    assert result.structured["message"].endswith("x ...: unknown argument; known: text")
    assert len(result.text) < 1000
    with pytest.raises(UnknownToolError, match=r"^Unknown tool: x{500} \.\.\.$"):
        await host.call_tool(name, {})
    with pytest.raises(NotServedError, match=r"^Unknown prompt: x{500} \.\.\.$"):
        await host.content.get_prompt(name, {})
    with pytest.raises(NotServedError, match=r"^Unknown resource: x{500} \.\.\.$"):
        await host.content.read_resource(name)


# Cached answers


async def test_an_answer_is_given_again_for_the_same_arguments_and_counts_against_no_limit(
    serve: Any,
):
    host = serve(Counter(), cache_ttl=60, rate_limit="2/hour")
    sent = ({"text": ""}, {}, {"text": "b"}, {"text": "b"}, {"text": ""})
    answers = [(await host.call_tool("count", arguments)).structured for arguments in sent]
    assert [answer["call"] for answer in answers] == [1, 1, 2, 2, 1]


async def test_an_answer_is_forgotten_in_time(serve: Any):
    counter = Counter()
    host = serve(counter, cache_ttl=0.05)
    await host.call_tool("count", {})
    await anyio.sleep(0.1)
    await host.call_tool("count", {})
    assert counter.calls == 2


@pytest.mark.parametrize("fails", [False, True])
async def test_equal_calls_at_one_time_run_once_and_a_failure_is_not_cached(
    serve: Any, *, fails: bool
):
    counter = Counter(seconds=0.05)
    counter.fails = fails
    host = serve(counter, cache_ttl=60)
    results = await all_of(host, 10)
    assert {error_type(result) for result in results} == {"tool_error" if fails else ""}
    assert counter.calls == 1
    counter.fails = False
    assert not (await host.call_tool("count", {})).is_error
    assert counter.calls == (2 if fails else 1)


async def test_who_waits_for_a_cancelled_call_calls_itself(serve: Any):
    counter = Counter(seconds=3600)
    host = serve(counter, cache_ttl=60)
    first = asyncio.ensure_future(host.call_tool("count", {}))
    await until(lambda: counter.calls)
    counter.seconds = 0
    second = asyncio.ensure_future(host.call_tool("count", {}))
    await anyio.wait_all_tasks_blocked()
    first.cancel()
    assert (await second).structured == {"text": "", "call": 2}


# Slots


@pytest.mark.parametrize(
    ("settings", "most", "most_of_other"),
    [({"concurrency": 2}, 2, 6), ({"tools": {"concurrency": 3}}, 3, 3)],
    ids=["of a tool", "of a plugin"],
)
async def test_so_many_calls_run_at_a_time(
    serve: Any, settings: dict[str, Any], most: int, most_of_other: int
):
    counter = Counter(seconds=0.02)
    other = Counter(seconds=0.02) if most_of_other > most else counter
    host = serve(counter, other, **settings)
    results = await asyncio.gather(*(host.call_tool(name, {}) for name in ["count", "second"] * 6))
    assert not any(result.is_error for result in results)
    assert (counter.most, other.most) == (most, most_of_other)


async def test_callers_that_wait_for_a_slot_are_served_in_turn(make_host: MakeHost):
    served, going, go = list[str](), anyio.Event(), anyio.Event()

    class Desk(Plugin):
        @tool
        async def serve(self, call: CallContext) -> str:
            """Serve."""
            going.set()
            await go.wait()
            served.append(call.caller)
            return ""

    host = make_host({"desk": Desk}, tools={"overrides": {"serve": {"concurrency": 1}}})

    async def call(caller: str) -> None:
        await host.call_tool("serve", {}, HostContext(Principal(caller)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "ada")
        await going.wait()
        for count, caller in enumerate(["ada"] * 4 + ["ben"] * 2 + ["cleo"], start=1):
            tasks.start_soon(call, caller)
            await until(lambda count=count: host.pipeline.slots.waiting == count)
        go.set()
    assert served == ["ada", "ada", "ben", "cleo", "ada", "ben", "ada", "ada"]


async def test_waiting_for_a_slot_counts_against_the_deadline_which_frees_it(serve: Any):
    counter = Counter(seconds=30)
    host = serve(counter, concurrency=1, timeout=0.1)
    assert [error_type(result) for result in await all_of(host, 3)] == ["timeout"] * 3
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
    text = pydantic_core.to_json(structured).decode()
    result = capped(ToolResult(text=text, structured=structured), limit)
    if tokens(text) <= limit:
        assert result.structured == structured
    elif not result.is_error:
        assert result.structured is not None
        kept = result.structured["results"]
        assert items[: len(kept)] == kept
        assert json.loads(result.text) == result.structured
        assert f"the first {len(kept)} of {len(items)}" in result.notes[0]
        assert result.structured["message"] == f"Found. {result.notes[0]}"
    else:
        assert error_type(result) == "too_large"


def test_what_cannot_be_cut_is_an_error_that_says_what_to_do():
    structured = {"text": "x" * 100}
    result = capped(ToolResult(text="x" * 100, structured=structured), 10)
    assert error_type(result) == "too_large"
    assert "raise its max_output_tokens in the configuration" in result.text


async def test_callers_are_forgotten_before_they_fill_the_memory():
    rates, limit = RateLimits(), ("1/day",)
    assert (await rates.wait(limit, "count", "first"))[0] == 0
    for number in range(9_999):
        await rates.wait(limit, "count", str(number))
    assert (await rates.wait(limit, "count", "first"))[0] > 0, "who still calls is not forgotten"
    for number in range(20_000):
        await rates.wait(limit, "count", f"more {number}")
    assert len(rates._times) == 10_000


# What authors declare


async def test_a_cached_answer_is_shared_only_where_the_tool_says_so(make_host: MakeHost):
    calls: list[str] = []

    class Kept(Plugin):
        @tool(read_only=True, cache_ttl=60)
        async def mine(self, call: CallContext) -> str:
            """Say who calls."""
            calls.append("mine")
            return call.caller

        @tool(read_only=True, cache_ttl=60, cache_scope="public")
        async def everybodys(self) -> str:
            """Say the same to everybody."""
            calls.append("everybodys")
            return "the same"

    host = make_host({"kept": Kept})
    for name in ("mine", "everybodys"):
        for caller in ("ada", "ben", "ada"):
            await host.call_tool(name, {}, HostContext(Principal(caller)))
    assert calls == ["mine", "mine", "everybodys"]


class Answering(HostContext):
    """A caller whose user answers with the caller's name."""

    async def ask(self, question: str, answer: type[Any]) -> Any:
        del question
        with self.paused():
            await anyio.sleep(0.02)
        return answer(name=self.caller)


async def test_what_concerns_one_caller_is_no_answer_for_those_who_wait(make_host: MakeHost):
    class Name(BaseModel):
        name: str

    class Shared(Plugin):
        @tool(read_only=True, cache_ttl=60, cache_scope="public", rate_limit="2/hour")
        async def greet(self, call: CallContext) -> str:
            """Greet a user by name."""
            await anyio.sleep(0.02)
            found = await call.ask("Who are you?", Name)
            return f"Hello {found.name}" if found else "Hello"

    callers = (
        HostContext(Principal("ada")),
        Answering(Principal("ben")),
        Answering(Principal("eve")),
    )
    host = make_host({"shared": Shared})
    results = await asyncio.gather(*(host.call_tool("greet", {}, caller) for caller in callers))
    assert error_type(results[0]) == "cannot_ask"
    assert [result.text for result in results[1:]] == ["Hello ben", "Hello eve"]
