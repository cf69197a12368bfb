"""Tools that tell how far they are and ask the user, in both protocol generations."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Literal

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp_types import ClientCapabilities, ElicitRequestParams, ElicitResult, ErrorData
from pydantic import BaseModel, Field

from standards_mcp import (
    CallContext,
    CannotAskError,
    Plugin,
    Tool,
    ToolCall,
    ToolHandler,
    ToolResult,
    hookimpl,
    tool,
)
from standards_mcp.calls.context import Unattended
from standards_mcp.host import Host
from standards_mcp.server import context as client_context
from standards_mcp.server.server import build_server

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]
Open = Callable[..., AbstractAsyncContextManager[Client]]
WAIT = 30.0


class Choice(BaseModel):
    grade: Annotated[Literal["3", "4"], Field(description="Which grade.")]
    sure: bool = True


class Name(BaseModel):
    name: str


class AskPlugin(Plugin):
    runs = 0

    @hookimpl
    def register_tools(self):
        return [
            Tool(name="choose", function=self.choose, timeout=0.3),
            Tool(name="survey", function=self.survey),
            Tool(name="count", function=self.count),
            Tool(name="forgive", function=self.forgive),
            Tool(name="keep", function=self.forgive, read_only=True, cache_ttl=600),
        ]

    @hookimpl
    def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
        async def handle(call: ToolCall) -> ToolResult:
            return await call_next(call)

        return handle

    async def choose(self, topic: str, call: CallContext) -> dict[str, Any]:
        """Choose a grade for a topic."""
        AskPlugin.runs += 1
        choice = await call.ask(f"Which grade for {topic}?", Choice)
        return {"grade": choice.grade if choice else None, "caller": call.caller}

    async def survey(self, call: CallContext) -> list[str]:
        """Ask two questions."""
        first = await call.ask("Your name?", Name)
        second = await call.ask("And your friend's?", Name)
        return [answer.name for answer in (first, second) if answer]

    async def count(self, call: CallContext) -> str:
        """Count to three."""
        for number in (1, 2, 3):
            await call.report_progress(number, 3, f"at {number}")
        return "done"

    async def forgive(self, call: CallContext) -> str:
        """Do without an answer."""
        try:
            answer = await call.ask("Your name?", Name)
        except CannotAskError:
            return "nobody"
        except Exception:  # noqa: BLE001  - a tool that is careless with what it catches
            return "caught"
        return answer.name if answer else "declined"


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    AskPlugin.runs = 0


@pytest.fixture
def connect(open_client: Open, make_host: MakeHost) -> Open:
    def opened(answer: Any = None, **settings: Any) -> AbstractAsyncContextManager[Client]:
        host = make_host({"ask": AskPlugin}, **settings)
        return open_client(host, elicitation_callback=answer)

    return opened


def answering(*replies: ElicitResult, asked: list[str] | None = None, delay: float = 0):
    queue = list(replies)

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        if asked is not None:
            asked.append(params.message)
        await anyio.sleep(delay)
        return queue.pop(0)

    return answer


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


async def test_the_context_is_no_argument_of_the_tool(connect: Open):
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools["choose"].input_schema["properties"]) == ["topic"]
        refused = await client.call_tool("choose", {"topic": "x", "call": "y"})
    assert "call: unknown argument" in refused.content[0].text


async def test_a_tool_asks_the_user_and_gets_the_answer(connect: Open):
    asked: list[str] = []
    answer = answering(accept(grade="4"), asked=asked)
    async with connect(answer) as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
    assert result.structured_content == {"grade": "4", "caller": "local"}
    assert asked == ["Which grade for clocks?"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_does_not_answer_gives_nothing(connect: Open, action: Any):
    async with connect(answering(ElicitResult(action=action))) as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
    assert result.structured_content["grade"] is None


async def test_several_questions_are_asked_once_each(connect: Open):
    asked: list[str] = []
    answer = answering(accept(name="Ada"), accept(name="Bo"), asked=asked)
    async with connect(answer) as client:
        result = await client.call_tool("survey", {})
    assert result.structured_content == {"result": ["Ada", "Bo"]}
    assert asked == ["Your name?", "And your friend's?"]


async def test_the_deadline_stands_still_while_the_user_thinks(connect: Open):
    async with connect(answering(accept(grade="3"), delay=0.8)) as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
    assert not result.is_error


async def test_an_answer_that_does_not_fit_is_refused(connect: Open):
    async with connect(answering(accept(grade="12"))) as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
    assert result.structured_content["error_type"] == "invalid_input"
    assert "does not fit: grade: Input should be '3' or '4'" in result.content[0].text


async def test_where_nobody_can_be_asked_the_model_is_told_what_to_do(connect: Open):
    async with connect() as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
        assert (await client.call_tool("forgive", {})).content[0].text == "nobody"
    assert result.is_error
    assert "Ask in the conversation: 'Which grade for clocks?'" in result.content[0].text


async def test_a_careless_tool_does_not_swallow_a_question(connect: Open):
    async with connect(answering(accept(name="Ada"))) as client:
        assert (await client.call_tool("forgive", {})).content[0].text == "Ada"


async def test_a_command_cannot_be_asked_either(make_host: MakeHost):
    host = make_host({"ask": AskPlugin})
    assert (await host.call_tool("forgive", {})).text == "nobody"
    assert (await host.call_tool("count", {})).text == "done"


async def test_progress_reaches_the_client_that_wants_it(connect: Open):
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    async with connect() as client:
        result = await client.call_tool("count", {}, progress_callback=hear)
        assert (await client.call_tool("count", {})).content[0].text == "done"
    assert result.content[0].text == "done"
    assert heard == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]


async def test_what_a_client_makes_up_of_earlier_answers_is_refused(make_host: MakeHost):
    server = build_server(make_host({"ask": AskPlugin}), "1")
    answer = answering(accept(name="Ada"))
    async with Client(server, mode="auto", elicitation_callback=answer) as client:
        forged = '{"1-x":{"action":"accept","content":{"name":"Eve"}}}'
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.call_tool("survey", {}, request_state=forged)


def test_a_sync_function_cannot_take_the_context(make_host: MakeHost):
    def sync(call: CallContext) -> str:
        """Do."""
        return call.caller

    class SyncPlugin(Plugin):
        @hookimpl
        def register_tools(self):
            return [Tool(name="sync", function=sync)]

    host = make_host({"sync": SyncPlugin})
    assert host.manager.records["sync"].reason == (
        "tool 'sync': its argument 'call' is a CallContext, so it must be an async function"
    )


async def test_the_context_may_be_optional_for_who_calls_the_function(make_host: MakeHost):
    class GreetPlugin(Plugin):
        @tool(read_only=True)
        async def greet(self, call: CallContext | None = None) -> str:
            """Greet the caller."""
            return f"Hello {call.caller if call else 'nobody'}"

    host = make_host({"greet": GreetPlugin})
    assert host.visible().find("greet").arguments.schema["properties"] == {}
    assert (await host.call_tool("greet", {})).text == "Hello local"
    assert await GreetPlugin.__new__(GreetPlugin).greet() == "Hello nobody"


async def test_a_client_that_can_ask_and_does_not_is_no_crash_of_the_tool(make_host: MakeHost):
    async def refuse(context: ClientRequestContext, params: ElicitRequestParams) -> ErrorData:
        del context, params
        return ErrorData(code=-32600, message="no forms today")

    server = build_server(make_host({"ask": AskPlugin}), "1")
    async with Client(server, mode="legacy", elicitation_callback=refuse) as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
        assert (await client.call_tool("forgive", {})).content[0].text == "nobody"
    assert result.structured_content["error_type"] == "cannot_ask"
    assert "Ask in the conversation: 'Which grade for clocks?'" in result.content[0].text


async def test_a_call_that_goes_on_after_a_question_counts_once(connect: Open):
    answer = answering(*(accept(name=name) for name in ("Ada", "Bo")))
    tools = {"overrides": {"survey": {"rate_limit": "1/minute"}}}
    async with connect(answer, tools=tools) as client:
        result = await client.call_tool("survey", {})
        assert result.structured_content == {"result": ["Ada", "Bo"]}
        again = await client.call_tool("survey", {})
    assert again.structured_content["error_type"] == "rate_limited"


async def test_an_answer_that_the_user_gave_is_not_given_again(connect: Open):
    async with connect(answering(accept(name="Ada"), accept(name="Bo"))) as client:
        answers = [(await client.call_tool("keep", {})).content[0].text for _ in "12"]
    assert answers == ["Ada", "Bo"]


async def test_the_log_tells_of_the_rounds_of_a_call(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    server = build_server(make_host({"ask": AskPlugin}), "1")
    answer = answering(accept(name="Ada"), accept(name="Bo"))
    async with Client(server, mode="auto", elicitation_callback=answer) as client:
        await client.call_tool("survey", {})
    told = [each.outcome for each in caplog.records if each.getMessage() == "tool call"]
    assert told == ["asked", "asked", "ok"]


async def test_a_deadline_stands_still_until_the_last_of_several_questions_is_answered():
    context = Unattended()
    with context.within(0.2):
        with context.paused():
            with context.paused():
                await anyio.sleep(0.15)
            await anyio.sleep(0.15)
        with context.paused():
            pass
        await anyio.sleep(0.05)
        began = anyio.current_time()
        await anyio.sleep(WAIT)
    assert anyio.current_time() - began < WAIT / 2


@pytest.mark.parametrize(
    ("elicitation", "can_ask"),
    [({}, True), ({"form": {}}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)],
)
def test_a_client_that_shows_pages_only_is_not_asked_by_a_form(
    elicitation: dict[str, Any], can_ask: bool
):
    able = ClientCapabilities.model_validate({"elicitation": elicitation})
    assert client_context._asks_users(able) is can_ask
