"""Tools that tell how far they are and ask the client, in both protocol generations."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Literal

import anyio
import pytest
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.context import ClientRequestContext
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ImageContent,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
    TextContent,
)
from pydantic import BaseModel, Field
from support.conversations import conversation, request
from support.hosts import MakeHost, OpenClient
from support.waiting import WAIT, let_time_pass

from standards_mcp import (
    CallContext,
    CannotAskError,
    Plugin,
    Tool,
    ToolCall,
    ToolHandler,
    ToolResult,
    hookimpl,
    prompt,
    tool,
)
from standards_mcp.server.server import build_server

pytestmark = pytest.mark.anyio


def test_what_the_protocol_deprecates_is_deprecated_in_the_context():
    marked = {
        name for name, member in vars(CallContext).items() if hasattr(member, "__deprecated__")
    }
    assert marked == {"log", "roots", "sample"}


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
            Tool(name="choose", function=self.choose),
            Tool(name="survey", function=self.survey),
            Tool(name="count", function=self.count),
            Tool(name="forgive", function=self.forgive),
            Tool(name="keep", function=self.forgive, read_only=True, cache_ttl=600),
            Tool(name="compose", function=self.compose),
            Tool(name="locate", function=self.locate),
            Tool(name="gather", function=self.gather),
            Tool(name="reword", function=self.reword),
            Tool(name="note", function=self.note),
            Tool(name="say", function=self.say),
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

    async def compose(self, topic: str, call: CallContext) -> str:
        """Let the client's model write a line."""
        return await call.sample(f"A line on {topic}.", max_tokens=20, system="You rhyme.")

    async def locate(self, topic: str, call: CallContext) -> list[str]:
        """Say where the user works."""
        del topic
        return await call.roots()

    async def gather(self, call: CallContext) -> list[str]:
        """Ask all at once."""
        name, line, roots = await asyncio.gather(
            call.ask("Your name?", Name), call.sample("A line."), call.roots()
        )
        return [name.name if name else "", line, *roots]

    async def reword(self, call: CallContext) -> str:
        """Ask in other words each time."""
        AskPlugin.runs += 1
        answer = await call.ask(f"Your name, {AskPlugin.runs}?", Name, key="name")
        return answer.name if answer else ""

    async def note(self, call: CallContext) -> str:
        """Write to the client's log."""
        await call.log("looked", "debug")
        await call.log("begun")
        await call.log("odd", "warning")
        return "noted"

    async def say(self, call: CallContext, message: str = "hi", level: str = "info") -> str:
        """Write to the client's log."""
        await call.log("\ud800" if message == "half" else message, level)
        return "said"

    @prompt
    async def dedicate(self, topic: str, call: CallContext) -> str:
        """Write for somebody."""
        answer = await call.ask("For whom?", Name)
        return f"Write on {topic} for {answer.name if answer else 'all'}."


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    AskPlugin.runs = 0


@pytest.fixture
def connect(open_client: OpenClient, make_host: MakeHost) -> OpenClient:
    def opened(
        answer: Any = None, *, tools: Any = None, **callbacks: Any
    ) -> AbstractAsyncContextManager[Client]:
        host = make_host({"ask": AskPlugin}, tools=tools or {})
        return open_client(host, elicitation_callback=answer, **callbacks)

    return opened


def answering(*replies: ElicitResult, asked: list[str] | None = None, takes_long: bool = False):
    queue = list(replies)

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        if asked is not None:
            asked.append(params.message)
        if takes_long:
            let_time_pass()
            await anyio.wait_all_tasks_blocked()
        return queue.pop(0)

    return answer


def model_saying(what: Any, prompts: list[CreateMessageRequestParams] | None = None):
    content = TextContent(type="text", text=what) if isinstance(what, str) else what

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        del context
        if prompts is not None:
            prompts.append(params)
        return CreateMessageResult(role="assistant", content=content, model="test")

    return sample


async def at_home(context: ClientRequestContext) -> ListRootsResult:
    del context
    return ListRootsResult(roots=[Root(uri="file:///home/ada")])


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


CHOICE = ["Which grade for clocks?"]
NAMES = ["Your name?", "And your friend's?"]


async def test_the_context_is_no_argument_of_the_tool(connect: OpenClient):
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools["choose"].input_schema["properties"]) == ["topic"]
        refused = await client.call_tool("choose", {"topic": "x", "call": "y"})
    assert "call: unknown argument" in refused.content[0].text


@pytest.mark.parametrize(
    ("tool", "replies", "result", "asked"),
    [
        ("choose", [accept(grade="4")], {"grade": "4", "caller": "local"}, CHOICE),
        ("choose", [ElicitResult(action="decline")], {"grade": None, "caller": "local"}, CHOICE),
        ("choose", [ElicitResult(action="cancel")], {"grade": None, "caller": "local"}, CHOICE),
        ("survey", [accept(name="Ada"), accept(name="Bo")], {"result": ["Ada", "Bo"]}, NAMES),
    ],
    ids=["one that is answered", "one that is declined", "one that is closed", "two in a row"],
)
async def test_each_question_is_asked_once_and_its_answer_reaches_the_tool(
    connect: OpenClient, tool: str, replies: list[ElicitResult], result: Any, asked: list[str]
):
    heard: list[str] = []
    async with connect(answering(*replies, asked=heard)) as client:
        arguments = {"topic": "clocks"} if tool == "choose" else {}
        assert (await client.call_tool(tool, arguments)).structured_content == result
    assert heard == asked


async def test_an_answer_that_takes_long_is_taken_and_one_that_does_not_fit_refused(
    connect: OpenClient,
):
    answers = answering(accept(grade="3"), accept(grade="12"), takes_long=True)
    async with connect(answers) as client:
        assert not (await client.call_tool("choose", {"topic": "clocks"})).is_error
        result = await client.call_tool("choose", {"topic": "clocks"})
    assert result.structured_content["error_type"] == "invalid_input"
    assert "does not fit: grade: Input should be '3' or '4'" in result.content[0].text


async def test_the_model_hears_what_to_do_if_no_user_can_be_asked(make_host: MakeHost):
    host = make_host({"ask": AskPlugin})
    assert (await host.call_tool("forgive", {})).text == "nobody", "a command has no user"
    assert (await host.call_tool("count", {})).text == "done"
    async with Client(build_server(host, "1"), mode="legacy") as client:
        result = await client.call_tool("choose", {"topic": "clocks"})
        assert (await client.call_tool("forgive", {})).content[0].text == "nobody"
    assert result.is_error
    assert "Ask in the conversation: 'Which grade for clocks?'" in result.content[0].text


@pytest.mark.parametrize(
    ("tool", "capability", "advice"),
    [
        ("choose", "elicitation", "Ask in the conversation: 'Which grade for x?'"),
        ("compose", "sampling", "does not let servers use its model"),
        ("locate", "roots", "does not say in which folders"),
    ],
)
async def test_a_newer_client_is_told_which_capability_it_lacks(
    make_host: MakeHost, tool: str, capability: str, advice: str
):
    async with Client(build_server(make_host({"ask": AskPlugin}), "1")) as client:
        with pytest.raises(MCPError, match=re.escape(advice)) as told:
            await client.call_tool(tool, {"topic": "x"})
        assert (await client.call_tool("forgive", {})).content[0].text == "nobody"
    assert told.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    assert told.value.error.data == {"requiredCapabilities": {capability: {}}}


async def test_the_model_and_the_roots_of_the_client_can_be_asked(connect: OpenClient):
    prompts: list[CreateMessageRequestParams] = []
    able = {"sampling_callback": model_saying("Roses", prompts), "list_roots_callback": at_home}
    async with connect(**able) as client:
        assert (await client.call_tool("compose", {"topic": "x"})).content[0].text == "Roses"
        located = await client.call_tool("locate", {"topic": "x"})
    assert located.structured_content == {"result": ["file:///home/ada"]}
    assert prompts[0].messages[0].content.text == "A line on x."
    assert (prompts[0].max_tokens, prompts[0].system_prompt) == (20, "You rhyme.")
    image = ImageContent(type="image", data="aGk=", mime_type="image/png")
    async with connect(sampling_callback=model_saying(image)) as client:
        result = await client.call_tool("compose", {"topic": "x"})
    assert result.structured_content["error_type"] == "api_error"
    assert "answered with image" in result.structured_content["message"]


@pytest.mark.parametrize(("tool", "rounds"), [("gather", 2), ("survey", 3)])
async def test_questions_that_are_asked_together_take_one_round(
    connect: OpenClient, caplog: pytest.LogCaptureFixture, tool: str, rounds: int
):
    caplog.set_level(logging.INFO, "standards_mcp")
    able = {"sampling_callback": model_saying("Hi"), "list_roots_callback": at_home}
    async with connect(answering(accept(name="Ada"), accept(name="Bo")), **able) as client:
        result = await client.call_tool(tool, {})
        rounds = 1 if client.protocol_version < "2026" else rounds
    answers = {"gather": ["Ada", "Hi", "file:///home/ada"], "survey": ["Ada", "Bo"]}
    assert result.structured_content == {"result": answers[tool]}
    lines = [line.outcome for line in caplog.records if line.getMessage() == "tool call"]
    assert lines == ["asked"] * (rounds - 1) + ["ok"]


@pytest.mark.parametrize("tool", ["reword", "forgive"])
async def test_other_words_under_one_key_and_a_careless_except_lose_no_answer(
    connect: OpenClient, tool: str
):
    async with connect(answering(accept(name="Ada"))) as client:
        assert (await client.call_tool(tool, {})).content[0].text == "Ada"


async def test_a_prompt_may_ask_the_user_if_there_is_one(connect: OpenClient):
    async with connect(answering(accept(name="Ada"))) as client:
        (listed,) = (await client.list_prompts()).prompts
        assert [argument.name for argument in listed.arguments] == ["topic"]
        answer = await client.get_prompt("dedicate", {"topic": "clocks"})
    assert answer.messages[0].content.text == "Write on clocks for Ada."
    async with connect() as client:
        with pytest.raises(MCPError, match="Ask in the conversation: 'For whom"):
            await client.get_prompt("dedicate", {"topic": "clocks"})


@pytest.mark.parametrize("given", [{"level": "loud"}, {"message": "half"}], ids=str)
async def test_a_line_that_no_client_can_read_is_a_crash_of_the_tool(
    connect: OpenClient, given: dict[str, str]
):
    async with connect() as client:
        result = await client.call_tool("say", given)
    assert result.structured_content["error_type"] == "internal_error"


async def test_a_client_gets_the_lines_that_it_wants(make_host: MakeHost):
    server, heard = build_server(make_host({"ask": AskPlugin}), "1"), list[tuple[str, Any]]()

    async def hear(params: LoggingMessageNotificationParams) -> None:
        heard.append((params.level, params.data))

    for mode, level in (("legacy", "info"), ("auto", "info"), ("auto", None)):
        async with Client(server, mode=mode, logging_callback=hear, log_level=level) as client:
            if mode == "legacy":
                await client.call_tool("note", {})
                assert heard == [], "it has not said that it wants any"
                with pytest.warns(MCPDeprecationWarning):
                    await client.set_logging_level("info")
            await client.call_tool("note", {})
            with anyio.move_on_after(WAIT if level else 0.2):
                while len(heard) < 2:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
        assert heard == ([("info", "begun"), ("warning", "odd")] if level else [])
        heard.clear()


async def test_what_a_client_makes_up_of_earlier_answers_is_refused(make_host: MakeHost):
    server = build_server(make_host({"ask": AskPlugin}), "1")
    answer = answering(accept(name="Ada"))
    async with Client(server, mode="auto", elicitation_callback=answer) as client:
        forged = '{"1-x":{"action":"accept","content":{"name":"Eve"}}}'
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.call_tool("survey", {}, request_state=forged)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.get_prompt("dedicate", {"topic": "x"}, request_state=forged)


async def test_a_context_may_be_optional_but_not_in_a_plain_function(make_host: MakeHost):
    class GreetPlugin(Plugin):
        @tool(read_only=True)
        async def greet(self, call: CallContext | None = None) -> str:
            """Greet the caller."""
            return f"Hello {call.caller if call else 'nobody'}"

    class PlainPlugin(Plugin):
        @tool
        def plain(self, call: CallContext) -> str:
            """Do."""
            return call.caller

    host = make_host({"greet": GreetPlugin, "plain": PlainPlugin})
    assert host.visible().find("greet").arguments.schema["properties"] == {}
    assert (await host.call_tool("greet", {})).text == "Hello local"
    assert await GreetPlugin.__new__(GreetPlugin).greet() == "Hello nobody"
    assert host.manager.records["plain"].reason == (
        "tool 'plain': its argument 'call' is a CallContext, so it must be an async function"
    )


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


async def test_a_call_counts_once_and_answers_of_users_are_not_cached(connect: OpenClient):
    answer = answering(*(accept(name=name) for name in ("Ada", "Bo", "Cleo", "Dan")))
    tools = {"overrides": {"survey": {"rate_limit": "1/minute"}}}
    async with connect(answer, tools=tools) as client:
        result = await client.call_tool("survey", {})
        assert result.structured_content == {"result": ["Ada", "Bo"]}
        again = await client.call_tool("survey", {})
        answers = [(await client.call_tool("keep", {})).content[0].text for _ in "12"]
    assert again.structured_content["error_type"] == "rate_limited"
    assert answers == ["Cleo", "Dan"]


async def test_a_client_that_shows_pages_only_is_not_asked_by_a_form(make_host: MakeHost):
    host = make_host({"ask": AskPlugin})
    call = request(1, "tools/call", name="forgive", arguments={})
    answers = await conversation(host, call, elicitation={"url": {}})
    assert answers[1]["result"]["content"][0]["text"] == "nobody"
