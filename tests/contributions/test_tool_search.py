"""Which tools clients list, and how they find and call the others."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from mcp_types import ElicitResult
from pydantic import BaseModel
from support.hosts import MakeHost, OpenClient, error_type, message_of, names_of, plugin_with

from standards_mcp import CallContext, InvalidInputError, Plugin, Tool, hookimpl, resource, tool
from standards_mcp.calls.call import CallRecord
from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.selection import Access
from standards_mcp.contributions.tool_search import ALWAYS_LOAD, SEARCH_INSTRUCTIONS
from standards_mcp.host import Host
from standards_mcp.plugin import ToolHandler
from standards_mcp.server.reload import apply_settings

pytestmark = pytest.mark.anyio
OWN = ["search_tools", "call_tool"]
SEARCH = {"discovery": "search"}


class Reply(BaseModel):
    text: str


async def count(text: str, context: CallContext) -> int:
    await context.report_progress(1, 2, "half")
    return len(text.split())


async def ask(context: CallContext) -> str:
    reply = await context.ask("What do you say?", Reply)
    return reply.text if reply else "nothing"


def shout(text: str) -> str:
    if not text:
        raise InvalidInputError("text is empty")
    return text.upper()


def drop(name: str) -> str:
    return f"dropped {name}"


TOOLS = (
    Tool(
        name="words.count", description="Count the words of a text.", function=count, read_only=True
    ),
    Tool(
        name="shout",
        description="Write in capitals.",
        function=shout,
        read_only=True,
        rate_limit="2/hour",
    ),
    Tool(name="ask", description="Ask the user.", function=ask, read_only=True),
    Tool(name="drop", description="Drop a table.", function=drop),
    Tool(
        name="show",
        description="Show a chart.",
        function=shout,
        read_only=True,
        meta={"ui": {"resourceUri": "ui://chart"}},
    ),
)


class WordsPlugin(Plugin):
    instructions = "Use {words.count}."

    @hookimpl
    def register_tools(self):
        return TOOLS


def host_with(make_host: MakeHost, tools: Mapping[str, Any] = SEARCH, **settings: Any) -> Host:
    return make_host({"words": WordsPlugin}, tools=tools, **settings)


ALL = ["words_count", "shout", "ask", "drop", "show"]


@pytest.mark.parametrize(
    ("tools", "profile", "listed"),
    [
        ({}, {}, ALL),
        ({"discovery": "list"}, {}, ALL),
        (SEARCH, {}, [*OWN, "drop", "show"]),
        (SEARCH, {"discovery": "list"}, ALL),
        ({}, SEARCH, [*OWN, "drop", "show"]),
        (SEARCH | {"search_writing": True}, {}, [*OWN, "show"]),
        (SEARCH | {"always_listed": ["words.*"]}, {}, [*OWN, "words_count", "drop", "show"]),
        (SEARCH | {"always_listed": ["*"]}, {}, ALL),
        ({"search_above": 100}, {}, [*OWN, "drop", "show"]),
        ({"search_above": 100}, {"discovery": "list"}, ALL),
        ({"search_above": 100, "discovery": "list"}, {}, ALL),
        ({"search_above": 100_000}, {}, ALL),
    ],
)
async def test_the_admin_decides_which_tools_are_listed(
    open_client: OpenClient,
    make_host: MakeHost,
    tools: dict[str, Any],
    profile: dict[str, Any],
    listed: list[str],
):
    host = host_with(make_host, tools, profile="p", profiles={"p": profile})
    async with open_client(host) as client:
        assert await names_of(client) == listed


async def test_the_two_tools_tell_what_they_are_and_clients_load_them_at_once(
    open_client: OpenClient, make_host: MakeHost
):
    async with open_client(host_with(make_host, SEARCH | {"always_listed": ["shout"]})) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions == f"{SEARCH_INSTRUCTIONS} Use words_count."
    loaded = {name for name, tool in tools.items() if tool.meta and tool.meta.get(ALWAYS_LOAD)}
    assert loaded == {*OWN, "shout"}
    search, call = tools["search_tools"].annotations, tools["call_tool"].annotations
    assert search
    assert call
    assert search.read_only_hint
    assert call.destructive_hint
    assert not call.read_only_hint


async def test_always_listed_tools_are_marked_in_a_full_list(
    open_client: OpenClient, make_host: MakeHost
):
    async with open_client(host_with(make_host, {"always_listed": ["shout"]})) as client:
        tools = (await client.list_tools()).tools
        assert client.instructions == "Use words_count."
    assert [tool.name for tool in tools if ALWAYS_LOAD in (tool.meta or {})] == ["shout"]


async def test_a_search_returns_complete_definitions_and_the_tool_is_called_as_by_its_name(
    open_client: OpenClient, make_host: MakeHost
):
    reports: list[tuple[float, float | None, str | None]] = []

    async def report(*values: Any) -> None:
        reports.append(values)

    async with open_client(host_with(make_host)) as client:
        query = {"query": "how many words has my text?", "max_results": 2}
        answer = await client.call_tool("search_tools", query)
        assert json.loads(answer.content[0].text) == answer.structured_content
        first, second = answer.structured_content["tools"]
        assert first["name"] == "words_count"
        assert first["inputSchema"]["required"] == ["text"]
        assert first["outputSchema"]["properties"] == {"result": {"type": "integer"}}
        assert first["annotations"]["readOnlyHint"]
        assert second["name"] in {"shout", "ask"}, "listed tools are not found"
        for name in ("words_count", "words.count"):
            inner = {"name": name, "arguments": {"text": "a b c"}}
            result = await client.call_tool("call_tool", inner, progress_callback=report)
            assert result.structured_content == {"result": 3}
        direct = await client.call_tool("words_count", {"text": "a"})
        assert direct.structured_content == {"result": 1}
    assert reports == [(1, 2, "half")] * 2


async def test_definitions_have_no_output_schema_without_structured_content(make_host: MakeHost):
    host = host_with(make_host, SEARCH | {"structured": False})
    found = await host.call_tool("search_tools", {"query": "count words"})
    assert not any("outputSchema" in tool for tool in found.structured["tools"])


@pytest.mark.parametrize("arguments", ['{"text": "a"}', {"text": "a"}])
async def test_arguments_may_be_an_object_in_a_text(make_host: MakeHost, arguments: object):
    result = await host_with(make_host).call_tool(
        "call_tool", {"name": "shout", "arguments": arguments}
    )
    assert result.text == "A"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (
            {"name": "drop", "arguments": {"name": "x"}},
            "invalid_input",
            "drop may change something",
        ),
        ({"name": "call_tool"}, "invalid_input", "a tool that search_tools found"),
        ({"name": "shout", "arguments": "no JSON"}, "invalid_input", "arguments: should be"),
        ({"name": "shout", "arguments": '{"a":' * 9_000}, "invalid_input", "arguments"),
        ({"name": "shout", "arguments": f'{{"text": "{"x" * 20_000}"}}'}, "invalid_input", "found"),
        ({"name": "shout", "arguments": [1]}, "invalid_input", "arguments: should be"),
        ({"name": "shout", "text": "a"}, "invalid_input", "text: unknown argument"),
        ({"arguments": {}}, "invalid_input", "name: this argument is required"),
        ({"name": 5}, "invalid_input", "name"),
        ({"name": "shout"}, "invalid_input", "text: this argument is required"),
        ({"name": "shout", "arguments": {"text": ""}}, "invalid_input", "text is empty"),
        ({"name": "shoud"}, "not_found", "did you mean 'shout'? (search_tools finds tools)"),
    ],
)
async def test_a_wrong_call_is_a_result_that_says_why(
    make_host: MakeHost, arguments: dict[str, Any], kind: str, message: str
):
    result = await host_with(make_host).call_tool("call_tool", arguments)
    assert error_type(result) == kind
    assert message in message_of(result)


async def test_writing_tools_are_called_through_it_if_the_admin_lets_them_be_searched(
    make_host: MakeHost,
):
    host = host_with(make_host, SEARCH | {"search_writing": True})
    result = await host.call_tool("call_tool", {"name": "drop", "arguments": {"name": "x"}})
    assert result.text == "dropped x"


class Records:
    def __init__(self) -> None:
        self.ended: list[CallRecord] = []

    def call_started(self, record: CallRecord) -> None:
        pass

    def call_ended(self, record: CallRecord) -> None:
        self.ended.append(record)


async def test_limits_log_and_wrappers_see_one_call_of_the_inner_tool(make_host: MakeHost):
    wrapped: list[str] = []

    class WrapPlugin(Plugin):
        @hookimpl
        def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
            async def handle(call: Any) -> Any:
                wrapped.append(call.tool)
                return await call_next(call)

            return handle

    host = make_host({"words": WordsPlugin, "wrap": WrapPlugin}, tools=SEARCH)
    records = Records()
    host.observe(records)
    outcomes = [
        error_type(await host.call_tool("call_tool", {"name": "shout", "arguments": {"text": "a"}}))
        for _ in range(3)
    ]
    assert outcomes == ["", "", "rate_limited"], "each call counts once"
    assert error_type(await host.call_tool("shout", {"text": "a"})) == "rate_limited"
    await host.call_tool("call_tool", {"name": "gone", "arguments": {"secret": "x"}})
    await host.call_tool("call_tool", {"name": "drop"})
    await host.call_tool("search_tools", {"query": "text"})
    seen = [(each.name, each.plugin, dict(each.arguments)) for each in records.ended]
    assert seen == [
        *[("shout", "words", {"text": "a"})] * 4,
        ("gone", "", {"secret": "x"}),
        ("call_tool", "standards-mcp", {"name": "drop"}),
        ("search_tools", "standards-mcp", {"query": "text"}),
    ]
    assert wrapped == ["shout"] * 4 + ["call_tool", "search_tools"]


async def test_a_gate_may_refuse_the_inner_tool_and_the_general_rate_counts_refused_calls(
    make_host: MakeHost,
):
    host = host_with(make_host, SEARCH | {"rate_limit": "2/hour"})
    called = [
        error_type(await host.call_tool("call_tool", {"name": name}))
        for name in ("drop", "drop", "drop", "gone", "gone", "gone")
    ]
    limited = "rate_limited"
    assert called == [*["invalid_input"] * 2, limited, *["not_found"] * 2, limited]

    def gate(record: CallRecord) -> None:
        if record.name == "shout":
            raise InvalidInputError("not today")

    host.guard(gate)
    result = await host.call_tool("call_tool", {"name": "shout", "arguments": {"text": "a"}})
    assert message_of(result) == "not today"


async def test_a_caller_finds_and_calls_only_what_the_access_allows(make_host: MakeHost):
    host = host_with(make_host)
    caller = Principal("guest", Access(names=("shout", "drop")))
    found = await host.call_tool("search_tools", {"query": "count words"}, HostContext(caller))
    assert [tool["name"] for tool in found.structured["tools"]] == ["shout"]
    inner = {"name": "words_count", "arguments": {"text": "a"}}
    result = await host.call_tool("call_tool", inner, HostContext(caller))
    assert message_of(result).startswith("Unknown tool: words_count")
    nobody = Principal("nobody", Access(names=()))
    assert host.visible(nobody).listed_tools == []


async def test_a_question_of_the_inner_tool_reaches_the_user(
    open_client: OpenClient, make_host: MakeHost
):
    async def answer(*_: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"text": "hello"})

    async with open_client(host_with(make_host), elicitation_callback=answer) as client:
        result = await client.call_tool("call_tool", {"name": "ask"})
        assert result.content[0].text == "hello"


async def test_tools_with_views_and_tools_for_views_stay_listed(make_host: MakeHost):
    class ViewsPlugin(Plugin):
        @tool(read_only=True, views_only=True)
        def page_more(self) -> str:
            """Load more."""
            return "more"

        @resource("ui://views/words.html", view_of=("words.count",))
        def words_view(self) -> str:
            """Show the count."""
            return "<!doctype html>"

    host = make_host({"words": WordsPlugin, "views": ViewsPlugin}, tools=SEARCH)
    listed = {item.published for item in host.visible().listed_tools}
    assert listed == {*OWN, "words_count", "drop", "show", "page_more"}


async def test_a_plugin_does_not_take_the_names_of_the_search(make_host: MakeHost):
    taken = Tool(name="call_tool", description="Mine.", function=drop, read_only=True)
    host = make_host({"words": WordsPlugin, "own": plugin_with(taken)}, tools=SEARCH)
    (own,) = [item for item in host.visible().tools if item.plugin == "own"]
    assert "set another in its override" in own.hidden_reason
    renamed = {"overrides": {"call_tool": {"name": "call_mine"}}}
    host = make_host({"words": WordsPlugin, "own": plugin_with(taken)}, tools=SEARCH | renamed)
    inner = {"name": "call_mine", "arguments": {"name": "x"}}
    assert (await host.call_tool("call_tool", inner)).text == "dropped x"


async def test_the_ranking_is_opened_before_the_first_search(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
):
    opened: list[int] = []

    def open_ranking(definitions: Any) -> Any:
        opened.append(len(definitions))
        return lambda _: [0.0] * len(definitions)

    monkeypatch.setattr("standards_mcp.host.open_tool_ranking", open_ranking)
    host = host_with(make_host)
    assert opened == []
    await host.warm_up()
    await host.call_tool("search_tools", {"query": "a"})
    assert opened == [3]


async def test_a_reload_switches_the_search_on_and_off(make_host: MakeHost):
    host = host_with(make_host, {})
    for tools, changed in ((SEARCH, ("tools",)), (SEARCH | {"timeout": 3}, ()), ({}, ("tools",))):
        settings = Settings(state_dir=host.settings.state_dir, tools=tools)
        assert apply_settings(host, LoadedSettings(settings, None)).changed == changed
        assert bool(host.visible().find("search_tools")) == bool(tools)


async def test_it_is_ranked_by_shared_words_if_the_ranking_cannot_be_loaded(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(sys.modules, "standards_mcp_ranking", None)
    host = host_with(make_host)
    found = await host.call_tool("search_tools", {"query": "capital letters", "max_results": 1})
    assert [tool["name"] for tool in found.structured["tools"]] == ["shout"]
    assert "shared words alone" in caplog.text
