"""The run loop, over any transport and for any caller."""

from __future__ import annotations

import pytest
from support.conversations import conversation, request
from support.hosts import MakeHost

from standards_mcp import Plugin, Prompt, Tool, hookimpl
from standards_mcp.calls.context import Principal
from standards_mcp.contributions.selection import Access
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio

NAMES = ["find_book", "get_book", "add_book", "drop_book", "count"]
TEACHER = Principal("teacher", Access(names=("find_*", "get_*")))


class BooksPlugin(Plugin):
    instructions = "Call {find_book} first.\nCall {drop_book} last."
    running = 0

    @hookimpl
    def register_tools(self):
        def answer() -> str:
            return "done"

        return [Tool(name=name, description=name, function=answer) for name in NAMES]

    @hookimpl
    def register_prompts(self):
        def tidy(tools: dict[str, str]) -> str:
            return f"Call {tools['drop_book']}."

        return [Prompt(name="get_tidy", description="Tidy", function=tidy, needs=("drop_book",))]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host({"books": BooksPlugin})


async def test_a_principal_sees_and_calls_its_own_tools_only(host: Host):
    answers = await conversation(
        host,
        request(1, "tools/list"),
        request(2, "tools/call", name="get_book", arguments={}),
        request(3, "tools/call", name="drop_book", arguments={}),
        request(4, "prompts/list"),
        request(5, "prompts/get", name="get_tidy"),
        principal=TEACHER,
    )
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["find_book", "get_book"]
    assert answers[2]["result"]["content"][0]["text"] == "done"
    assert answers[3]["error"]["message"].startswith("Unknown tool: drop_book")
    assert answers[4]["result"]["prompts"] == []
    assert answers[5]["error"]["message"] == "Unknown prompt: get_tidy"
    assert answers[0]["result"]["instructions"] == "Call find_book first."


async def test_a_principal_may_be_bound_to_a_profile(make_host: MakeHost):
    profiles = {"readers": {"disable": ["add_*", "drop_*"]}, "others": {"plugins": []}}
    host = make_host({"books": BooksPlugin}, profiles=profiles)
    reader, other, gone = (
        Principal(name, Access(profiles=(name,))) for name in ("readers", "others", "gone")
    )
    names = [item.published for item in host.visible(reader).visible_tools]
    assert names == ["find_book", "get_book", "count"]
    assert host.visible(other).visible_tools == []
    assert host.visible(gone).visible_tools == [], "a profile that is gone lets nobody see more"
    assert len(host.visible().visible_tools) == len(NAMES)


async def test_two_servers_do_not_run_the_plugins_twice(host: Host):
    async with host.running():
        with pytest.raises(RuntimeError, match="is running already"):
            async with host.running():
                pass
