"""The run loop, over any transport and for any caller."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import Client
from support.waiting import WAIT

from standards_mcp import Plugin, Prompt, Tool, hookimpl
from standards_mcp.calls.context import Principal
from standards_mcp.contributions.selection import Access
from standards_mcp.host import Host
from standards_mcp.server.run import run
from standards_mcp.server.server import HostServer
from standards_mcp.server.stdio import serve_stdio

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
def host(make_host: Callable[..., Host]) -> Host:
    return make_host({"books": BooksPlugin})


def request(number: int | None, method: str, **params: Any) -> bytes:
    numbered = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params} | numbered).encode()


async def over_stdio(host: Host, principal: Principal, *lines: bytes) -> dict[int, Any]:
    """Return the answers that *principal* gets to lines over two pipes, by their ids."""
    (their_end, ours), (answers, wire) = os.pipe(), os.pipe()
    client = {"name": "test", "version": "1"}
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    first = request(0, "initialize", **handshake), request(None, "notifications/initialized")
    os.write(ours, b"\n".join([*first, *lines, b""]))
    os.close(ours)
    with anyio.fail_after(WAIT):
        transport = partial(serve_stdio, reader=their_end, writer=wire)
        await run(host, transport, principal_of=lambda _: principal)
    os.close(wire)
    with open(answers, "rb") as received:  # noqa: ASYNC230, PTH123  - everything is written
        return {answer["id"]: answer for answer in map(json.loads, received)}


async def test_another_transport_needs_nothing_but_a_function(host: Host):
    seen: list[str] = []

    async def in_memory(server: HostServer) -> None:
        async with Client(server) as client:
            seen.extend(tool.name for tool in (await client.list_tools()).tools)

    await run(host, in_memory)
    assert seen == NAMES


async def test_an_exception_of_the_transport_ends_the_run(host: Host):
    async def broken(_: HostServer) -> None:
        async with anyio.create_task_group():
            raise ConnectionError("the line is dead")

    with pytest.raises(BaseExceptionGroup, match="unhandled errors"):
        await run(host, broken)


async def test_a_principal_sees_and_calls_its_own_tools_only(host: Host):
    answers = await over_stdio(
        host,
        TEACHER,
        request(1, "tools/list"),
        request(2, "tools/call", name="get_book", arguments={}),
        request(3, "tools/call", name="drop_book", arguments={}),
        request(4, "prompts/list"),
        request(5, "prompts/get", name="get_tidy"),
    )
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["find_book", "get_book"]
    assert answers[2]["result"]["content"][0]["text"] == "done"
    assert answers[3]["error"]["message"].startswith("Unknown tool: drop_book")
    assert answers[4]["result"]["prompts"] == []
    assert answers[5]["error"]["message"] == "Unknown prompt: get_tidy"
    assert answers[0]["result"]["instructions"] == "Call find_book first."


async def test_a_principal_may_be_bound_to_a_profile(make_host: Callable[..., Host]):
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


async def test_the_tools_of_a_principal_follow_the_plugins(host: Host):
    assert host.visible(TEACHER) is host.visible(Principal("another", TEACHER.access))
    host.manager.fail(host.manager.records["books"], "it is gone")
    assert host.visible(TEACHER).visible_tools == []


async def test_two_servers_do_not_run_the_plugins_twice(host: Host):
    async with host.running():
        with pytest.raises(RuntimeError, match="is running already"):
            async with host.running():
                pass
