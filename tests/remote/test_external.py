"""Other MCP servers behind the host, as real processes and over real HTTP."""
# ruff: noqa: ASYNC220  nothing tells of what other processes do

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)
from support.hosts import (
    MODERN,
    MakeHost,
    OpenClient,
    entry_of,
    names_of,
    served,
    started,
    until_answered,
)
from support.waiting import WAIT, is_alive, let_time_pass, until, wait_until
from support.web_server import WebServer, in_thread

from standards_mcp import Plugin, Tool, ToolResult, hookimpl
from standards_mcp.config.timing import Timing
from standards_mcp.errors import PluginError
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import Status
from standards_mcp.remote import connection as connections
from standards_mcp.remote.processes import MAX_LINES
from standards_mcp.server.server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
entry = entry_of("plain_server.py")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups")


def runs(folder: Path) -> list[int]:
    return [int(file.stem) for file in folder.glob("*.pid")]


def text_of(result: ToolResult) -> str:
    return result.content[0]["text"]


async def test_tools_of_a_server_are_served_under_its_name(host: Host):
    async with started(host):
        assert served(host)[:2] == ["peer_echo", "peer_ask"]
        assert len(served(host)) == 12
        echo = host.visible().find("peer.echo")
        assert echo.tool.read_only
        assert echo.title == "Echo"
        assert not host.visible().find("peer_blocks").tool.read_only
        for name in ("peer_echo", "peer.echo"):
            assert text_of(await host.call_tool(name, {"value": "hi"})) == "hi"


async def test_tools_of_a_server_are_marked_as_untrusted_and_their_descriptions_stay(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert all(tool.meta["standards-mcp/untrusted-text"] is True for tool in tools.values())
    assert not any("instructions" in (tool.description or "") for tool in tools.values())


async def test_tools_of_a_server_are_found_and_called_by_the_search_for_tools(
    make_host: MakeHost, folder: Path, open_client: OpenClient
):
    host = make_host(servers={"peer": entry(folder)}, tools={"discovery": "search"})
    async with open_client(host) as client:
        assert (await names_of(client))[:2] == ["search_tools", "call_tool"]
        assert "peer_echo" not in await names_of(client)
        found = await client.call_tool("search_tools", {"query": "echo a value"})
        assert "peer_echo" in [tool["name"] for tool in found.structured_content["tools"]]
        inner = {"name": "peer_echo", "arguments": {"value": "[1]"}}
        assert (await client.call_tool("call_tool", inner)).content[0].text == "[1]"


async def test_an_answer_is_passed_on_as_the_server_gave_it(host: Host):
    async with Client(build_server(host, "1")) as client:
        result = await client.call_tool("peer_blocks", {})
        kinds = [block.type for block in result.content]
        assert kinds == ["text", "image", "resource_link", "resource"]
        assert result.content[1].data == "aGk="
        assert result.structured_content == {"count": 2, "none": None}
        assert result.meta["acme/cost"] == 1
        failed = await client.call_tool("peer_fail", {"value": "luck"})
        assert failed.is_error
        assert failed.content[0].text == "no luck"


async def test_arguments_are_passed_on_unaltered(host: Host):
    async with started(host):
        for value in (None, [None, {"a": None}], "[1]", "{}", 5, {"": {}}):
            answered = text_of(await host.call_tool("peer_echo", {"value": value}))
            assert (answered if isinstance(value, str) else json.loads(answered)) == value


async def test_a_call_that_a_server_refuses_does_not_end_it(host: Host, folder: Path):
    (folder / "vague").touch()  # it refuses to speak the newest protocol with -32000, too
    async with started(host):
        for code in (-32602, -32000, -32603, -32602):
            refused = await host.call_tool("peer_refuse", {"value": code})
            assert "refused it: Unknown tool: refuse" in refused.structured["message"]
        wrong = await host.call_tool("peer_wrong", {})
        assert "does not follow the protocol (" in wrong.structured["message"]
        assert len(runs(folder)) == 1


async def test_arguments_that_do_not_fit_are_refused_by_the_host(make_host: MakeHost, folder: Path):
    server = entry(folder)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = {"name": "count", "inputSchema": schema | {"additionalProperties": False}}
    (folder / "tools.json").write_text(json.dumps([tool]))
    async with started(make_host(servers={"peer": server})) as host:
        for wrong in ({}, {"n": "one"}, {"n": "1.5"}, {"n": None}, {"n": 1, "m": 2}):
            result = await host.call_tool("peer_count", wrong)
            assert result.structured["error_type"] == "invalid_input"
        assert text_of(await host.call_tool("peer_count", {"n": 1})) == "null"


LEFT_OUT = object()


async def test_arguments_of_a_neighbouring_type_reach_a_server_as_its_schema_has_them(
    make_host: MakeHost, folder: Path
):
    cases: list[tuple[dict[str, Any], object, object]] = [
        ({"type": "integer"}, "91", 91),
        ({"type": "integer"}, 91.0, 91.0),
        ({"type": "number"}, "9.5", 9.5),
        ({"type": "boolean"}, "true", True),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "7", 7),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "object", "properties": {"x": {"type": "number"}}}, '{"x": "1"}', {"x": 1}),
        ({"type": ["string", "integer"]}, "91", "91"),
        ({}, "91", "91"),
        ({"type": "integer"}, None, LEFT_OUT),
    ]
    server = entry(folder)
    properties = {f"v{number}": schema for number, (schema, _, _) in enumerate(cases)}
    tool = {"name": "all", "inputSchema": {"type": "object", "properties": properties}}
    (folder / "tools.json").write_text(json.dumps([tool]))
    arguments = {f"v{number}": given for number, (_, given, _) in enumerate(cases)}
    async with started(make_host(servers={"peer": server})) as host:
        sent = json.loads(text_of(await host.call_tool("peer_all", arguments | {"other": "1"})))
    assert sent.pop("other") == "1"
    for number, (schema, _, passed) in enumerate(cases):
        value = sent.pop(f"v{number}", LEFT_OUT)
        assert (value, type(value)) == (passed, type(passed)), schema
    assert sent == {}


async def test_a_server_is_started_by_the_first_call_once_its_tools_are_known(
    make_host: MakeHost, folder: Path
):
    async with started(make_host(servers={"peer": entry(folder)})):
        assert len(runs(folder)) == 1
    assert (folder / "ended").exists()
    again = make_host(servers={"peer": entry(folder)})
    assert len(served(again)) == 12
    async with started(again) as host:
        await anyio.sleep(0.1)
        assert len(runs(folder)) == 1
        assert text_of(await host.call_tool("peer_echo", {"value": "x"})) == "x"
        await host.call_tool("peer_echo", {"value": "x"})
        assert len(runs(folder)) == 2
    changed = make_host(servers={"peer": entry(folder, env={"OTHER": "1"})})
    assert served(changed) == []


async def test_a_server_that_ends_during_a_call_costs_that_call_and_is_started_again(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    now = 0.0
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: now))
    async with started(host):
        result = await host.call_tool("peer_crash", {})
        assert result.is_error
        message = result.structured["message"]
        assert "it ended with exit code 3; its last words: giving up: it is too late" in message
        result = await host.call_tool("peer_echo", {"value": "x"})
        assert result.structured["error_type"] == "api_error"
        assert "Call it again in 1 s or later" in result.structured["message"]
        health = (await check_health(host.manager))["peer"]
        assert health.status == "failed"
        assert "exit code 3" in health.message
        now = 1.0
        result = await until_answered(host, "peer_echo", {"value": "x"})
        assert text_of(result) == "x"
        assert len(runs(folder)) == 2
        await host.call_tool("peer_crash", {})
        result = await host.call_tool("peer_echo", {"value": "x"})
        assert "Call it again in 2 s or later" in result.structured["message"]


async def test_a_call_that_is_cancelled_or_overdue_is_cancelled_at_the_server(
    host: Host, folder: Path
):
    async with started(host):
        call = await asleep(host, folder)
        let_time_pass()
        assert (await call).structured["error_type"] == "timeout"
        await until((folder / "cancelled").exists)
        (folder / "cancelled").unlink()
        call = await asleep(host, folder)
        call.cancel()
        await until((folder / "cancelled").exists)
        assert text_of(await host.call_tool("peer_echo", {"value": "x"})) == "x"


async def asleep(host: Host, folder: Path) -> asyncio.Task[ToolResult]:
    """Return a call that the server has got and never answers."""
    call = asyncio.create_task(host.call_tool("peer_sleep", {}))
    await until((folder / "sleeps").exists)
    (folder / "sleeps").unlink()
    return call


async def test_calls_at_one_time_share_one_process(host: Host, folder: Path):
    async with started(host):
        results = await asyncio.gather(
            *(host.call_tool("peer_echo", {"value": number}) for number in range(20))
        )
        assert [text_of(result) for result in results] == [str(number) for number in range(20)]
    assert len(runs(folder)) == 1


async def test_a_tool_that_cannot_be_served_is_withheld_alone_with_the_reason(
    make_host: MakeHost, folder: Path
):
    server = entry(folder)
    recursive = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
    recursive["$defs"] = {"a": {"$ref": "#/$defs/a"}}
    bad = {
        "none": {},
        "union": {"anyOf": [{"type": "object"}]},
        "recursive": recursive,
        "odd": {"type": "object", "properties": {"a b": {}}},
        "no-schema": {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        "n" * 80: {"type": "object"},
        "draft": {"type": "object", "$schema": 5},
        "required": {"type": "object", "required": "a"},
        "properties": {"type": "object", "properties": [1]},
    }
    tools = [{"name": name, "inputSchema": schema} for name, schema in bad.items()]
    tools += [{"name": "missing"}, {}, {"name": 5, "inputSchema": []}]
    tools += [{"name": "good", "inputSchema": {"type": "object", "title": "kept"}}]
    tools += [{"name": "good", "inputSchema": {"type": "object"}}]
    (folder / "tools.json").write_text(json.dumps(tools))
    async with started(make_host(servers={"peer": server})) as host:
        assert served(host) == ["peer_good"]
        schema = host.visible().visible_tools[0].arguments.schema
        assert schema == {"type": "object", "title": "kept"}
        *others, last = host.visible().tools
        assert last.hidden_reason == "it is listed twice under this name"
        reasons = {item.tool.name: item.hidden_reason for item in others}
        assert "refers to itself" in reasons["peer.recursive"]
        assert "longer than 64" in reasons["peer." + "n" * 80]
        assert all(reasons[name] for name in reasons if name != "peer.good")
        health = (await check_health(host.manager))["peer"]
        assert health.status == "degraded"
        result = await host.call_tool("peer.odd", {})
        assert result.structured["error_type"] == "disabled"


async def test_a_name_that_is_taken_can_be_changed_by_an_override(
    make_host: MakeHost, folder: Path
):
    class Mine(Plugin):
        @hookimpl
        def register_tools(self):
            return [Tool(name="echo", description="Mine", function=lambda: "mine")]

    servers = {"peer": entry(folder, prefix=""), "second": entry(folder, prefix="")}
    async with started(make_host({"mine": Mine}, servers=servers)) as host:
        assert served(host).count("echo") == 1
        item = host.visible().find("peer.echo")
        assert "'echo' already belongs to plugin 'mine'" in item.hidden_reason
        assert '[tools.overrides."peer.echo"]' in item.hidden_reason
        assert (await host.call_tool("echo", {})).text == "mine"
        also_taken = host.visible().find("second.echo").hidden_reason
        assert "belongs to plugin 'mine'" in also_taken
        assert "belongs to plugin 'peer'" in host.visible().find("second.blocks").hidden_reason
    tools = {"overrides": {"peer.echo": {"name": "peer_says"}}}
    async with started(make_host({"mine": Mine}, servers=servers, tools=tools)) as host:
        assert text_of(await host.call_tool("peer_says", {"value": "x"})) == "x"
        assert (await host.call_tool("echo", {})).text == "mine"


async def test_the_rules_for_tools_hold_for_those_of_servers(make_host: MakeHost, folder: Path):
    tools = {
        "read_only": True,
        "overrides": {"peer.echo": {"name": "say", "arguments": {"value": {"fixed": "mine"}}}},
    }
    async with started(make_host(servers={"peer": entry(folder)}, tools=tools)) as host:
        assert served(host) == ["say"]
        assert text_of(await host.call_tool("say", {})) == "mine"
    tools = {"disable": ["peer.env"], "max_output_tokens": 100}
    async with started(make_host(servers={"peer": entry(folder)}, tools=tools)) as host:
        assert "peer_env" not in served(host)
        result = await host.call_tool("peer_echo", {"value": "x" * 1000})
        assert result.content[0]["text"] == "x" * 400
        assert "Cut to about 100" in result.notes[0]


async def test_what_a_server_writes_goes_to_the_log_line_by_line_and_not_without_end(
    host: Host, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    logging.getLogger("standards_mcp").propagate = True
    async with started(host):
        for lines in (1, 5000):
            assert text_of(await host.call_tool("peer_noise", {"value": lines})) == "done"
    texts = [record.text for record in caplog.records if record.getMessage() == "output"]
    assert "line one" in texts
    assert "line  [31mtwo" in texts
    assert any("not a message" in text for text in texts)
    assert max(map(len, texts)) <= 2000
    assert len(texts) <= MAX_LINES
    assert any("dropped" in record.getMessage() for record in caplog.records)


@posix
async def test_one_server_that_hangs_and_one_that_dies_delay_no_other(
    make_host: MakeHost, tmp_path: Path
):
    servers = {name: entry(tmp_path / name) for name in ("dies", "good", "hangs")}
    servers["hangs"]["start_timeout"] = 600
    servers["none"] = {"command": "no-such-program"}
    (tmp_path / "dies" / "die").touch()
    (tmp_path / "hangs" / "hang").touch()
    host = make_host(servers=servers)
    async with host.running():
        await until(lambda: "good_echo" in served(host))
        assert text_of(await host.call_tool("good_echo", {"value": "x"})) == "x"
        await until(lambda: host.manager.records["dies"].status is Status.FAILED)
        assert "its last words: cannot start" in host.manager.records["dies"].reason
        assert "cannot be started: no such program" in host.manager.records["none"].reason
    assert not any(is_alive(pid) for name in servers for pid in runs(tmp_path / name))


async def test_a_start_is_awaited_for_its_time_and_not_again_after_a_failure(
    make_host: MakeHost, folder: Path
):
    server = entry(folder, start_timeout=0.5)
    (folder / "hang").touch()
    async with started(make_host(servers={"peer": server})) as host:
        await until(lambda: host.manager.records["peer"].status is Status.FAILED)
        assert "did not answer within 0.5 s" in host.manager.records["peer"].reason
    again = make_host(servers={"peer": server | {"start_timeout": 600}})
    async with again.running():
        with anyio.fail_after(WAIT):
            await again.manager.wait_listed()


async def test_secrets_stay_out_of_errors_and_come_from_variables(
    make_host: MakeHost, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PEER_TOKEN", "s3cret-value")
    env = {"TOKEN": "${PEER_TOKEN}", "LEVEL": "${PEER_LEVEL:-warn}", "KEY": "literal-secret"}
    async with started(make_host(servers={"peer": entry(folder, env=env)})) as host:
        assert text_of(await host.call_tool("peer_env", {"value": "TOKEN"})) == "s3cret-value"
        assert text_of(await host.call_tool("peer_env", {"value": "LEVEL"})) == "warn"
        assert text_of(await host.call_tool("peer_env", {"value": "PEER_TOKEN"})) == "unset"
        failed = await host.call_tool("peer_fail", {"value": "s3cret-value, literal-secret"})
        assert text_of(failed) == "no ***, ***"
        assert "s3cret" not in repr(host.manager.records["peer"])
        assert "literal-secret" not in repr(host.settings)
    monkeypatch.delenv("PEER_TOKEN")
    host = make_host(servers={"peer": entry(folder, env=env)})
    record = host.manager.records["peer"]
    assert record.status is Status.FAILED
    assert record.reason == (
        "[servers.peer.env] TOKEN: ${PEER_TOKEN} is not set; set PEER_TOKEN in the environment"
    )


@posix
async def test_what_a_server_started_ends_with_it(host: Host):
    async with started(host):
        grandchild = int(text_of(await host.call_tool("peer_spawn", {})))
        assert is_alive(grandchild)
    await until(lambda: not is_alive(grandchild))


@posix
async def test_servers_end_when_the_host_is_killed(folder: Path, tmp_path: Path):
    config = tmp_path / "servers.toml"
    args = json.dumps(entry(folder)["args"])
    config.write_text(
        f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n"
        f"[servers.peer]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    )
    command = [sys.executable, "-m", "standards_mcp", "--config", str(config), "serve"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        await until(lambda: bool(runs(folder)))
        (pid,) = runs(folder)
        os.kill(process.pid, signal.SIGKILL)
        await until(lambda: not is_alive(pid))
    finally:
        process.kill()
        process.communicate()


async def ada(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    assert params.message == "Your name?"
    return ElicitResult(action="accept", content={"name": "Ada"})


async def test_progress_of_a_server_reaches_the_client(host: Host, open_client: OpenClient):
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    async with open_client(host) as client:
        await client.call_tool("peer_progress", {}, progress_callback=hear)
        assert heard == [(1, None, "at 1"), (2, None, "at 2")]
        await client.call_tool("peer_progress", {})
        assert len(heard) == 2


async def test_a_server_of_an_earlier_generation_asks_clients_of_one(
    make_host: MakeHost, folder: Path
):
    host = make_host(servers={"peer": entry(folder)})
    able = folder / "able.json"
    async with Client(build_server(host, "1"), mode="legacy", elicitation_callback=ada) as client:
        await client.list_tools()
        assert json.loads(able.read_text()) == {}, "it was started before anybody called"
        result = await client.call_tool("peer_ask", {})
        assert json.loads(able.read_text()) == {"elicitation": {"form": {}}}
        reply = {"action": "accept", "content": {"name": "Ada"}}
        assert json.loads(result.content[0].text) == reply
        page = await client.call_tool("peer_ask", {"value": "https://example.org"})
        assert page.content[0].text == "Only forms can be shown to the user."
        beside = asyncio.create_task(client.call_tool("peer_sleep", {}))
        await until((folder / "sleeps").exists)
        confused = await client.call_tool("peer_ask", {})
        assert "2 calls are running" in confused.content[0].text
        beside.cancel()
    assert len(runs(folder)) == 2


async def test_the_deadline_stands_still_while_a_server_asks(host: Host):
    async def reply(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        let_time_pass()
        await anyio.wait_all_tasks_blocked()
        return await ada(context, params)

    async with Client(build_server(host, "1"), mode="legacy", elicitation_callback=reply) as client:
        with anyio.fail_after(WAIT):
            while (await client.call_tool("peer_echo", {})).is_error:
                pass  # it is being started
        assert not (await client.call_tool("peer_ask", {})).is_error


@pytest.mark.parametrize(("mode", "callback"), [("auto", ada), ("legacy", None)])
async def test_a_server_of_an_earlier_generation_is_told_where_nobody_can_be_asked(
    host: Host, folder: Path, mode: Any, callback: Any
):
    async with Client(build_server(host, "1"), mode=mode, elicitation_callback=callback) as client:
        result = await client.call_tool("peer_ask", {})
        assert "Ask in the conversation: 'Your name?'" in result.content[0].text
        assert json.loads((folder / "able.json").read_text()) == {}
    assert len(runs(folder)) == 1


async def test_a_server_of_the_2026_generation_asks_clients_of_every_one(
    newest: Host, open_client: OpenClient
):
    async def sample(_: object, params: CreateMessageRequestParams) -> CreateMessageResult:
        said = TextContent(type="text", text=str(params.max_tokens))
        return CreateMessageResult(role="assistant", content=said, model="test")

    able = {"elicitation_callback": ada, "sampling_callback": sample}
    async with open_client(newest, **able) as client:
        for _ in range(2):
            result = await client.call_tool("modern_greet", {"greeting": "Hello"})
            assert result.content[0].text == "Hello Ada"
        result = await client.call_tool("modern_odd", {"how": "sample"})
        assert result.content[0].text == "the model said 1"


@pytest.fixture
def newest(make_host: MakeHost) -> Host:
    """Return a host with a server of the 2026 generation."""
    return make_host(servers={"modern": {"command": sys.executable, "args": MODERN}})


async def test_a_server_may_want_to_be_called_again_but_not_what_clients_are_not_asked_for(
    newest: Host,
):
    async with started(newest) as host:
        result = await host.call_tool("modern.greet", {"greeting": "Hello"})
        assert "elicitation" in result.structured["message"]
        assert result.structured["error_type"] == "cannot_ask"
        assert text_of(await host.call_tool("modern.odd", {"how": "wait"})) == "done"
        asked = await host.call_tool("modern.odd", {"how": "show"})
        assert "cannot be passed on (elicitation/create)" in asked.structured["message"]


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture
def address() -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Return a function that serves by HTTP at the same port whenever it is called."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running: list[subprocess.Popen[bytes]] = []

    def serve() -> str:
        command = [sys.executable, *MODERN, str(port)]
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        wait_until(lambda: is_open(port))
        return f"http://127.0.0.1:{port}/mcp"

    serve.stop = lambda: [(each.kill(), each.wait()) for each in running]
    yield serve
    serve.stop()


async def test_a_server_is_reached_by_http_and_again_after_it_was_gone(
    make_host: MakeHost, address: Any
):
    url = address()
    async with started(make_host(servers={"web": {"url": url}})) as host:
        assert (await host.call_tool("web.add", {"a": 2})).structured == {"result": 3}
        placed = await host.call_tool("web.place", {"where": "über"})  # it goes in a header, too
        assert placed.structured == {"result": "über"}
        address.stop()
        gone = await host.call_tool("web.add", {"a": 2})
        assert gone.structured["error_type"] == "api_error"
        address()
        assert (await until_answered(host, "web.add", {"a": 2})).structured == {"result": 3}


@pytest.mark.smoke
async def test_the_program_serves_them_with_nothing_else_on_its_stdout(
    folder: Path, tmp_path: Path
):
    shared = tmp_path / "clients.json"
    shared.write_text(json.dumps({"mcpServers": {"peer": entry(folder) | {"disabled": False}}}))
    config = tmp_path / "servers.toml"
    config.write_text(f"servers_file = {json.dumps(shared.name)}\n")
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "standards_mcp", "--config", str(config), "serve"],
        env=dict(os.environ),
    )
    async with Client(parameters) as client:
        names = await names_of(client)
        assert "peer_echo" in names
        assert "find_relevant_standards" in names
        result = await client.call_tool("peer_noise", {"value": 3})
        assert result.content[0].text == "done"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with in_thread(WebServer()) as server:
        yield server


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "it answered with HTTP status 401 Unauthorized; check the token in headers"),
        (404, "it answered with HTTP status 404 Not Found; check url and headers"),
        (503, "it answered with HTTP status 503 Service Unavailable; ask its administrator"),
        (499, "it answered with HTTP status 499; check url and headers"),
    ],
)
async def test_a_server_that_refuses_by_its_http_status_is_told_with_what_to_do(
    make_host: MakeHost, web: WebServer, status: int, reason: str
):
    web.status = status
    async with started(make_host(servers={"web": {"url": web.url}})) as host:
        told = f"its tools are not known: server 'web' did not start: {reason}"
        assert host.manager.records["web"].reason == told


async def test_an_address_of_no_server_is_told_with_what_to_do(make_host: MakeHost, web: WebServer):
    web.page = "<html></html>"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        urls = {
            "page": web.url,
            "bare": "localhost:80/mcp",
            "dead": f"http://127.0.0.1:{unused.getsockname()[1]}/mcp",
        }
        servers = {name: {"url": url} for name, url in urls.items()}
        async with started(make_host(servers=servers)) as host:
            reasons = {name: host.manager.records[name].reason for name in urls}
    assert "text/html; check url, which leads to no MCP server" in reasons["page"]
    assert "its url must begin with http:// or https://" in reasons["bare"]
    assert "it cannot be reached (ConnectError" in reasons["dead"]
    assert "check url and that it runs" in reasons["dead"]


async def test_a_call_whose_session_has_expired_is_made_in_a_new_one(
    make_host: MakeHost, web: WebServer
):
    async with started(make_host(servers={"web": {"url": web.url}})) as host:
        assert text_of(await host.call_tool("web.count", {})) == "1"
        web.sessions.clear()
        results = await asyncio.gather(*(host.call_tool("web.count", {}) for _ in range(3)))
        assert sorted(map(text_of, results)) == ["2", "3", "4"]
        assert web.calls == 4
        web.refusal = "Not Found"
        refused = await host.call_tool("web.count", {})
        assert refused.structured["message"] == "server 'web' refused it: Not Found"
        web.status = 401
        refused = await host.call_tool("web.count", {})
    assert "HTTP status 401 Unauthorized; check the token" in refused.structured["message"]


async def test_one_that_is_required_may_take_as_long_as_its_start_timeout_says(
    make_host: MakeHost, folder: Path
):
    timing = Timing(start=0.01)
    server = entry(folder, required=True, start_timeout=WAIT)
    async with started(make_host(servers={"peer": server}, timing=timing)) as host:
        assert "peer_echo" in served(host)
        assert len(runs(folder)) == 1
    (folder / "die").touch()
    reason = "plugin 'peer' failed: its lifespan failed: server 'peer' did not start: it ended"
    with pytest.raises(PluginError, match=reason):
        async with started(make_host(servers={"peer": server}, timing=timing)):
            pytest.fail("it started")


@posix
async def test_while_its_tools_are_not_known_a_server_says_so_and_no_longer_once_they_are(
    make_host: MakeHost, folder: Path
):
    server = entry(folder)
    (folder / "hang").touch()
    host = make_host(servers={"peer": server})
    async with host.running():
        assert "not known yet" in host.manager.records["peer"].reason

    def remembered() -> str:
        again = make_host(servers={"peer": server})
        again.restore()
        return again.manager.records["peer"].reason

    assert "not known yet" in remembered()
    (folder / "hang").unlink()
    async with started(host := make_host(servers={"peer": server})):
        assert host.manager.records["peer"].reason == ""
    assert remembered() == ""


async def test_what_a_server_said_when_it_failed_is_kept_without_its_secrets(
    make_host: MakeHost, folder: Path, tmp_path: Path
):
    server = entry(folder, env={"KEY": "s3cret-value"})
    (folder / "die").touch()
    async with started(make_host(servers={"peer": server})) as host:
        assert "the key *** is not valid" in host.manager.records["peer"].reason
    kept = (tmp_path / "state" / "plugins" / "peer" / "tools.json").read_text("utf-8")
    assert "the key *** is not valid" in kept


@pytest.mark.parametrize(
    ("cursor", "size", "kept"),
    [("same", 1, 2), ("{}", 1, 100), ("{}", 600, 1000)],
    ids=["the same page", "small pages", "large pages"],
)
async def test_a_list_without_end_is_taken_up_to_a_limit(
    make_host: MakeHost,
    web: WebServer,
    caplog: pytest.LogCaptureFixture,
    cursor: str,
    size: int,
    kept: int,
):
    def page(number: int) -> dict[str, Any]:
        names = [f"t{number}_{each}" for each in range(size)]
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        return {"tools": tools, "nextCursor": cursor.format(number)}

    logging.getLogger("standards_mcp").propagate = True
    web.page_of = page
    async with started(make_host(servers={"web": {"url": web.url}})) as host:
        assert len(served(host)) == kept
    assert any("too many tools" in record.getMessage() for record in caplog.records)
