"""The MCP server, through the SDK's own client, in both protocol generations."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel
from support.conversations import conversation, request
from support.hosts import MakeHost, OpenClient
from support.marks import WARNING

from standards_mcp import InvalidInputError, NotFoundError, Plugin, Tool, hookimpl, resource
from standards_mcp.host import Host
from standards_mcp.server.server import build_server

pytestmark = pytest.mark.anyio
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


class Total(BaseModel):
    total: int


class SumsPlugin(Plugin):
    instructions = "Call {sums.add} to add.\nCall {gone} to wait."
    opened = 0

    @hookimpl
    def register_tools(self):
        async def add(a: int, b: int = 0) -> Total:
            return Total(total=a + b)

        def find(code: str) -> str:
            if code == "empty":
                raise InvalidInputError("code is empty")
            if code == "gone":
                raise NotFoundError("no such code")
            return code

        return [
            Tool(name="sums.add", title="Add", description="Add", function=add, read_only=True),
            Tool(
                name="find",
                description="Find",
                function=find,
                returns_untrusted_text=True,
                meta={"example/cost": 1, "standards-mcp/untrusted-text": False},
            ),
            Tool(name="hidden", description="Hidden", function=find),
        ]

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        SumsPlugin.opened += 1
        yield
        SumsPlugin.opened -= 1


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host({"sums": SumsPlugin}, tools={"disable": ["hidden"]})


async def test_tools_are_listed_with_descriptions_schemas_and_hints(
    open_client: OpenClient, host: Host
):
    async with open_client(host) as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == ["sums_add", "find"]
    add, find = listed
    assert (add.title, add.description) == ("Add", "Add")
    assert add.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 0}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert add.output_schema == {
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
    }
    assert add.annotations is not None
    assert add.annotations.read_only_hint
    assert not add.annotations.destructive_hint
    assert find.output_schema is None
    assert add.meta == {"standards-mcp/plugin": "sums"}
    assert find.meta == {
        "standards-mcp/plugin": "sums",
        "example/cost": 1,
        "standards-mcp/untrusted-text": True,
    }
    assert find.description == f"Find {WARNING}"


async def test_a_client_gets_the_title_and_the_instructions_of_the_server(
    open_client: OpenClient, host: Host
):
    async with open_client(host) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("standards-mcp", "1.2.3")
        assert client.server_info.title == "sums"
        assert client.instructions == "Call sums_add to add."
        assert SumsPlugin.opened == 1, "the plugins run as long as the server"
    assert SumsPlugin.opened == 0


@pytest.mark.parametrize("published", ["sums_add", "sums.add"])
async def test_both_spellings_of_a_dotted_name_are_accepted_and_the_admin_chooses_one(
    open_client: OpenClient, make_host: MakeHost, published: str
):
    names = {"tool_names": "declared"} if "." in published else {}
    async with open_client(make_host({"sums": SumsPlugin}, **names)) as client:
        assert (await client.list_tools()).tools[0].name == published
        for name in ("sums_add", "sums.add"):
            result = await client.call_tool(name, {"a": 1, "b": 2})
            assert result.structured_content == {"total": 3}
            assert json.loads(result.content[0].text) == {"total": 3}
            assert not result.is_error


@pytest.mark.parametrize(
    ("auth", "scope"),
    [
        ({}, "public"),
        ({"required": False, "tokens": {"ann": {"sha256": "0" * 64}}}, "private"),
        ({"required": True}, "private"),
        ({"jwt": {"issuer": "https://a.b", "audience": "https://c.d"}}, "private"),
    ],
)
async def test_lists_and_introductions_tell_caches_how_long_and_for_whom_they_hold(
    make_host: MakeHost, auth: dict[str, Any], scope: str
):
    host = make_host({"sums": SumsPlugin}, server={"auth": auth})
    async with Client(build_server(host, "1"), mode="auto") as client:
        answers: list[Any] = [
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resources(),
            await client.list_resource_templates(),
        ]
    assert [(each.ttl_ms, each.cache_scope) for each in answers] == [(300_000, scope)] * 4
    envelope = {"_meta": MODERN}
    answered = await conversation(host, request(1, "server/discover", **envelope), opens=False)
    result = answered[1]["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (300_000, scope)


class PagesPlugin(Plugin):
    @resource("pages://fixed", fixed=True)
    def fixed(self) -> str:
        """Read."""
        return "fixed"

    @resource("pages://{name}.html", fixed=True)
    def page(self, name: str) -> dict[str, str]:
        """Read."""
        return {"name": name}

    @resource("pages://computed")
    def computed(self) -> str:
        """Read."""
        return "computed"


@pytest.mark.parametrize(("auth", "scope"), [({}, "public"), ({"required": True}, "private")])
async def test_only_fixed_contents_may_be_kept(
    make_host: MakeHost, auth: dict[str, Any], scope: str
):
    host = make_host({"pages": PagesPlugin}, server={"auth": auth})
    async with Client(build_server(host, "1"), mode="auto") as client:
        for uri, hints in (
            ("pages://fixed", (300_000, scope)),
            ("pages://one.html", (300_000, scope)),
            ("pages://computed", (0, "private")),
        ):
            answer = await client.read_resource(uri)
            assert (answer.ttl_ms, answer.cache_scope) == hints
    answered = await conversation(host, request(1, "resources/read", uri="pages://fixed"))
    assert answered[1]["result"].keys() == {"contents"}, "an earlier protocol has no hints"


async def test_logging_is_advertised_to_earlier_clients_only(host: Host):
    anew = await conversation(host, request(1, "server/discover", _meta=MODERN), opens=False)
    assert "logging" not in anew[1]["result"]["capabilities"]
    assert anew[1]["result"]["capabilities"]["tools"]
    earlier = await conversation(host, request(1, "logging/setLevel", level="info"))
    assert earlier[0]["result"]["capabilities"]["logging"] == {}
    assert "result" in earlier[1]


async def test_a_list_is_not_to_be_kept_while_a_server_is_being_started(make_host: MakeHost):
    host = make_host({"sums": SumsPlugin}, servers={"late": {"command": "no-such-program"}})
    async with Client(build_server(host, "1"), mode="auto") as client:
        assert (await client.list_tools()).ttl_ms == 0


async def test_an_answer_of_an_earlier_protocol_has_no_hints_for_caches(host: Host):
    answered = await conversation(host, request(1, "tools/list"))
    assert answered[1]["result"].keys() == {"tools"}


async def test_an_unknown_tool_is_a_protocol_error_with_the_nearest_name(
    open_client: OpenClient, host: Host
):
    async with open_client(host) as client:
        with pytest.raises(MCPError, match="did you mean 'sums_add'") as caught:
            await client.call_tool("sums_ad", {})
    assert caught.value.error.code == INVALID_PARAMS


async def test_refusals_are_error_results_in_the_envelope(open_client: OpenClient, host: Host):
    refusals = [
        ("sums_add", {}, "invalid_input", "a: this argument is required"),
        ("sums_add", {"a": "x"}, "invalid_input", "a: should be a valid integer"),
        ("sums_add", {"a": 1, "c": 2}, "invalid_input", "c: unknown argument; known: a, b"),
        ("find", {"code": "empty"}, "invalid_input", "code is empty"),
        ("find", {"code": "gone"}, "not_found", "no such code"),
        ("hidden", {"code": "x"}, "disabled", "hidden is not served here ([tools] disable"),
    ]
    async with open_client(host) as client:
        for name, arguments, error_type, message in refusals:
            result = await client.call_tool(name, arguments)
            assert result.is_error
            said = result.structured_content["message"]
            assert said.startswith(message)
            envelope = {"success": False, "results": [], "message": said, "error_type": error_type}
            assert result.structured_content == json.loads(result.content[0].text) == envelope
