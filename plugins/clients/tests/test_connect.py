"""`connect`: official clients reach a real service through it, also when things go wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters
from mcp.shared.inbound import decode_header_value
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import BaseModel
from support.hosts import MakeHost
from support.http import MODERN, auth_of, bearer, free_port, served_over_http
from support.peer import COMMAND, Peer
from support.waiting import WAIT, until

from standards_mcp import CallContext, Plugin, Tool, hookimpl, tool
from standards_mcp.cli import cli
from standards_mcp.errors import StandardsMcpError
from standards_mcp_clients import connect
from standards_mcp_clients.bridge import Bridge
from standards_mcp_clients.bridge import _encoded as encoded  # the form of a header

pytestmark = pytest.mark.anyio
TOKEN = "standards-token-of-ann"  # noqa: S105


class Answer(BaseModel):
    """What the reader says."""

    sure: bool


class BooksPlugin(Plugin):
    """Tools that report, ask, wait and change the list of tools."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting, self.cancelled = anyio.Event(), anyio.Event()
        self.is_larger = False

    @tool
    async def count(self, context: CallContext) -> str:
        """Count with progress."""
        for number in range(3):
            await context.report_progress(number)
        return "counted"

    @tool
    async def lend(self, context: CallContext) -> str:
        """Ask the reader."""
        answer = await context.ask("Sure?", Answer)
        return f"sure: {answer.sure}" if answer else "nobody"

    @tool
    async def wait(self) -> str:
        """Wait for ever."""
        self.waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()

    @tool
    def buy(self) -> str:
        """Change the list of tools."""
        self.is_larger = not self.is_larger
        self.context.contributions_changed()
        return "bought"

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """Return a tool that is there at times."""
        extra = Tool(name="new_book", description="New.", function=lambda: "new")
        return [extra] if self.is_larger else []


@asynccontextmanager
async def bridged(url: str, token: str = "") -> AsyncGenerator[Any]:
    """Open the streams of a client whose messages a bridge forwards in this process."""
    to_client, from_service = anyio.create_memory_object_stream[SessionMessage | Exception](99)
    to_service, from_client = anyio.create_memory_object_stream[SessionMessage](99)

    async def write(line: str) -> None:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        await to_client.send(SessionMessage(message))

    async def lines() -> AsyncIterator[bytes]:
        async for item in from_client:
            yield item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    headers = bearer(token) if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=WAIT) as http,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(Bridge(http, url, write).run, lines())
        with from_service, to_service, to_client, from_client:
            yield from_service, to_service
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def client_through_bridge(
    url: str, token: str = "", mode: str = "auto", **arguments: Any
) -> AsyncGenerator[Client]:
    async with Client(bridged(f"{url}/mcp", token), mode=mode, **arguments) as client:
        yield client


both_generations = pytest.mark.parametrize("mode", ["legacy", "auto"])


@both_generations
async def test_tools_are_listed_and_called_with_progress(make_host: MakeHost, mode: str):
    reports: list[float] = []

    async def report(progress: float, *_: Any) -> None:
        reports.append(progress)

    host = make_host({"books": BooksPlugin}, server={"port": 0})
    async with served_over_http(host) as url, client_through_bridge(url, mode=mode) as client:
        assert "lend" in {item.name for item in (await client.list_tools()).tools}
        result = await client.call_tool("count", {}, progress_callback=report)
    assert result.content[0].text == "counted"
    assert reports == [0, 1, 2]


@both_generations
async def test_a_question_of_a_tool_reaches_the_user(make_host: MakeHost, mode: str):
    async def answer(*_: Any) -> Any:
        from mcp_types import ElicitResult

        return ElicitResult(action="accept", content={"sure": True})

    host = make_host({"books": BooksPlugin}, server={"port": 0})
    async with (
        served_over_http(host) as url,
        client_through_bridge(url, mode=mode, elicitation_callback=answer) as client,
    ):
        result = await client.call_tool("lend", {})
    assert result.content[0].text == "sure: True"


@both_generations
async def test_a_cancelled_call_is_cancelled_in_the_service(make_host: MakeHost, mode: str):
    host = make_host({"books": BooksPlugin}, server={"port": 0})
    async with served_over_http(host) as url, client_through_bridge(url, mode=mode) as client:
        plugin = host.manager.records["books"].plugin
        assert isinstance(plugin, BooksPlugin)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait", {})
            with anyio.fail_after(WAIT):
                await plugin.waiting.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(WAIT):
            await plugin.cancelled.wait()
        assert (await client.list_tools()).tools


async def test_a_change_of_the_tools_reaches_a_client_with_a_session(make_host: MakeHost):
    changed = anyio.Event()

    async def handle(message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            changed.set()

    host = make_host({"books": BooksPlugin}, server={"port": 0})
    async with (
        served_over_http(host) as url,
        client_through_bridge(url, mode="legacy", message_handler=handle) as client,
    ):
        with anyio.fail_after(WAIT):
            while not changed.is_set():
                await client.call_tool("buy", {})
                # A second change at once would take the first one back before it is announced.
                with anyio.move_on_after(2):
                    await changed.wait()


async def test_a_session_outlives_a_restart_of_the_service(make_host: MakeHost):
    port = free_port()
    settings = {"server": {"port": port}}
    async with anyio.create_task_group() as tasks:
        async with served_over_http(make_host({"books": BooksPlugin}, **settings)) as url:
            client = await tasks.start(_keep_open, url)
            assert (await client.call_tool("count", {})).content[0].text == "counted"
        with pytest.raises(MCPError, match="cannot be reached"):
            await client.list_tools()
        async with served_over_http(make_host({"books": BooksPlugin}, **settings)):
            assert (await client.call_tool("count", {})).content[0].text == "counted"
            tasks.cancel_scope.cancel()


async def _keep_open(url: str, *, task_status: anyio.abc.TaskStatus[Client]) -> None:
    async with client_through_bridge(url, mode="legacy") as client:
        task_status.started(client)
        await anyio.sleep_forever()


async def test_the_token_opens_the_service(make_host: MakeHost):
    host = make_host({"books": BooksPlugin}, server={"port": 0, "auth": auth_of(ann=TOKEN)})
    async with served_over_http(host) as url:
        async with client_through_bridge(url, TOKEN) as client:
            assert (await client.list_tools()).tools
        initialize = {"id": 1, "method": "initialize", "params": INITIALIZE_PARAMS}
        (answer,) = await answers_of(f"{url}/mcp", [initialize])
    assert "HTTP status 401; check the token" in answer["error"]["message"]


async def test_a_session_is_closed_with_its_client(make_host: MakeHost):
    host = make_host({"books": BooksPlugin}, server={"port": 0, "max_sessions": 1})
    async with served_over_http(host) as url:
        for _ in range(3):
            lines = [
                {"id": 1, "method": "initialize", "params": INITIALIZE_PARAMS},
                {"method": "notifications/initialized"},
            ]
            assert "result" in (await answers_of(f"{url}/mcp", lines))[0]


INITIALIZE_PARAMS = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


async def answers_of(url: str, lines: list[Any]) -> list[Any]:
    """Return what a client gets that writes these lines and ends."""
    answers: list[Any] = []

    async def write(line: str) -> None:
        answers.append(json.loads(line))

    async def each_line() -> AsyncIterator[bytes]:
        for line in lines:
            yield (
                line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0"} | line).encode()
            )
            await anyio.sleep(0.05)

    async with httpx2.AsyncClient(timeout=WAIT) as http:
        await Bridge(http, url, write).run(each_line())
    return answers


@pytest.mark.parametrize("line", [b"no json\n", b"[1]\n", b'{"jsonrpc": ' + b"[" * 100_000])
async def test_a_line_that_is_no_message_gets_an_error_and_the_next_is_served(
    make_host: MakeHost, line: bytes
):
    host = make_host({"books": BooksPlugin}, server={"port": 0})
    initialize = {"id": 1, "method": "initialize", "params": INITIALIZE_PARAMS}
    async with served_over_http(host) as url:
        error, answer = await answers_of(f"{url}/mcp", [line, initialize])
    assert error["error"]["code"] == -32700
    assert "id" not in error
    assert answer["result"]["protocolVersion"] == "2025-11-25"


async def test_an_error_of_the_service_keeps_its_code_and_the_id(make_host: MakeHost):
    host = make_host({"books": BooksPlugin}, server={"port": 0})
    meta = MODERN | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    request = {"id": "seven", "method": "tools/list", "params": {"_meta": meta}}
    async with served_over_http(host) as url:
        (answer,) = await answers_of(f"{url}/mcp", [request])
    assert answer["id"] == "seven"
    assert answer["error"]["code"] == -32022


@given(st.text(max_size=50))
def test_a_name_of_any_text_survives_in_a_header(name: str):
    header = encoded(name.encode(errors="replace").decode())
    assert header.isascii()
    assert "\n" not in header
    assert decode_header_value(header) == name.encode(errors="replace").decode()


@pytest.mark.processes
async def test_the_command_connects_an_official_client(make_host: MakeHost):
    host = make_host({"books": BooksPlugin}, server={"port": 0, "auth": auth_of(ann=TOKEN)})
    program, *words = COMMAND
    async with served_over_http(host) as url:
        options = ["connect", url, "--token-env", "BOOKS_TOKEN"]
        server = StdioServerParameters(
            command=program, args=[*words, *options], env={"BOOKS_TOKEN": TOKEN}
        )
        async with Client(server) as client:
            assert (await client.call_tool("count", {})).content[0].text == "counted"


@pytest.mark.processes
async def test_the_command_ends_when_its_input_ends(make_host: MakeHost):
    host = make_host({"books": BooksPlugin}, server={"port": 0})
    async with served_over_http(host) as url:
        peer = Peer("connect", url)
        answer = await anyio.to_thread.run_sync(peer.initialize)
        assert answer["serverInfo"]["name"] == "standards-mcp"
        peer.process.stdin.close()
        await until(lambda: peer.process.poll() is not None)
    assert peer.process.returncode == 0
    peer.kill()


async def test_a_check_says_what_answers(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch):
    host = make_host({"books": BooksPlugin}, server={"port": 0, "auth": auth_of(ann=TOKEN)})
    monkeypatch.setenv("BOOKS_TOKEN", TOKEN)
    async with served_over_http(host) as url:
        good = await _run("connect", url, "--token-env", "BOOKS_TOKEN", "--check")
        refused = await _run("connect", url, "--check")
    assert good.output.startswith(f"{url}/mcp answers: standards-mcp ")
    assert good.output.endswith(" with 4 tools\n")
    assert refused.exit_code == 1
    assert "HTTP status 401; check the token" in refused.output


async def _run(*words: str) -> Any:
    return await anyio.to_thread.run_sync(CliRunner().invoke, cli, words)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("example.org", "is not an address"),
        ("ftp://example.org", "is not an address"),
        ("http://[", "is not an address"),
        ("http://example.org", "unencrypted"),
        ("ann:secret@example.org", "is not an address"),
        ("https://example.org:99999", "is not an address"),
        ("https://ann:secret@example.org", "leave out the user name"),
    ],
)
async def test_an_address_that_cannot_be_right_is_refused(url: str, reason: str):
    result = await _run("connect", url)
    assert result.exit_code == 2
    assert reason in result.output
    assert "secret" not in result.output


VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: "2026-07-28"}
PING = {"id": 9, "method": "ping"}
OPENING = [{"id": 1, "method": "initialize"}, {"method": "notifications/initialized"}]


class Silence(httpx2.AsyncByteStream):
    """A stream that stays open."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b": hi\n\n"
        await anyio.sleep_forever()


async def answer_to(request: httpx2.Request) -> httpx2.Response:
    """Answer as a service does that opens one session."""
    message = json.loads(request.content or b"{}")
    if request.method == "GET" or "id" not in message:
        return httpx2.Response(405 if request.method == "GET" else 202)
    headers = {"mcp-session-id": "first"} if message["method"] == "initialize" else {}
    result = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
    return httpx2.Response(200, json=result, headers=headers)


async def answers_from(handler: Any, lines: list[Any], wait: float = 0) -> list[Any]:
    """Return what a client gets from a service that *handler* plays; each line waits a moment."""
    answers: list[Any] = []

    async def write(line: str) -> None:
        answers.append(json.loads(line))

    async def each_line() -> AsyncIterator[bytes]:
        for line in lines:
            yield json.dumps({"jsonrpc": "2.0"} | line).encode()
            await anyio.sleep(0.05)
        await anyio.sleep(wait)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as http:
        with anyio.fail_after(8):
            await Bridge(http, "https://books.example.org/mcp", write).run(each_line())
    return answers


@pytest.mark.parametrize(
    "line",
    [
        {"id": [1], "method": "tools/list"},
        {"id": True, "method": "tools/list"},
        {"id": 1, "method": ["tools/list"]},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"id": 1, "method": "t\u00f6\u00f6ls\n", "params": {"_meta": META}},
        {"id": 1, "method": "tools/list", "params": {"_meta": {VERSION: "2026\u00e9"}}},
    ],
)
async def test_an_odd_message_does_not_end_the_others(line: dict[str, Any]):
    answers = await answers_from(answer_to, [line, PING])
    assert answers[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}
    if "id" in line and (line["id"] != 1 or line["id"] is True or "params" not in line):
        assert answers[0]["error"]["code"] == -32600


async def test_an_odd_answer_does_not_end_the_others():
    async def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
            return httpx2.Response(200, headers=headers, stream=Silence())
        response = await answer_to(request)
        if b"initialize" in request.content and response.status_code == 200:
            result = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025\u00e9"}}
            return httpx2.Response(200, json=result, headers={"mcp-session-id": "first"})
        return response

    assert (await answers_from(handler, [*OPENING, PING]))[-1]["id"] == 9


async def test_an_open_subscription_does_not_delay_the_end_nor_a_slow_notification_a_call():
    async def handler(request: httpx2.Request) -> httpx2.Response:
        if b"subscriptions/listen" in request.content:
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, stream=Silence())
        if b"progress" in request.content:
            await anyio.sleep(1)
        return await answer_to(request)

    listen = {"id": 1, "method": "subscriptions/listen", "params": {"_meta": META}}
    progress = {"method": "notifications/progress"}
    started = anyio.current_time()
    answers = await answers_from(handler, [listen, progress, PING])
    assert [answer["id"] for answer in answers] == [9]
    assert anyio.current_time() - started < 5


async def test_one_session_is_opened_after_a_restart_and_initialized_first():
    seen: list[tuple[str, str | None]] = []

    async def handler(request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content or b"{}")
        session = request.headers.get("mcp-session-id")
        method = message.get("method", request.method)
        seen.append((method, session))
        response = await answer_to(request)
        if method == "initialize":
            count = sum(name == "initialize" for name, _ in seen)
            response.headers["mcp-session-id"] = f"session {count}"
        if method == "notifications/initialized":
            await anyio.sleep(0.1)
        if method == "call" and session == "session 1":
            await anyio.sleep(message["params"]["seconds"])
            return httpx2.Response(404)
        return response

    calls = [{"id": n, "method": "call", "params": {"seconds": n / 10}} for n in (2, 3, 6)]
    answers = await answers_from(handler, [*OPENING, *calls], wait=1)
    assert {answer["id"] for answer in answers if "result" in answer} == {1, 2, 3, 6}
    assert sum(name == "initialize" for name, _ in seen) == 2
    second = [name for name, session in seen if session == "session 2"]
    assert second[0] == "notifications/initialized"


async def test_a_broken_stream_of_an_ended_session_fails_at_once_and_a_busy_one_is_tried_again():
    statuses = [503, 405]
    reads: list[float] = []

    async def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            reads.append(request.extensions["timeout"]["read"])
            is_resumed = "last-event-id" in request.headers
            return httpx2.Response(404 if is_resumed else statuses.pop(0))
        if b"call" in request.content:
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, content=b"id: 1\ndata: \n\n")
        return await answer_to(request)

    lines = [*OPENING, {"id": 2, "method": "call"}]
    answers = await answers_from(handler, lines, wait=3)
    assert "connection ended" in answers[-1]["error"]["message"]
    assert statuses == []
    assert set(reads) == {60.0}


async def test_a_cancellation_reaches_an_earlier_service_without_sessions():
    methods: list[str] = []

    async def handler(request: httpx2.Request) -> httpx2.Response:
        methods.append(json.loads(request.content)["method"])
        return await answer_to(request)

    await answers_from(handler, [{"method": "notifications/cancelled", "params": {"requestId": 1}}])
    assert methods == ["notifications/cancelled"]


@pytest.mark.parametrize(("mode", "text"), [("plain", "a server"), ("earlier", "Books 2")])
async def test_a_check_takes_services_without_a_name_and_earlier_ones(mode: str, text: str):
    async def handler(request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content or b"{}")
        response = await answer_to(request)
        if "id" not in message or mode == "plain":
            return response
        if "_meta" in message.get("params", {}):
            return httpx2.Response(400)
        result = {"serverInfo": {"name": "Books", "version": "2"}, "tools": [{"name": "a"}]}
        return httpx2.Response(
            200, headers=response.headers, json={"jsonrpc": "2.0", "id": 1, "result": result}
        )

    assert text in await _checked(handler)


async def test_a_check_of_a_silent_service_says_so(monkeypatch: pytest.MonkeyPatch):
    async def handler(_: httpx2.Request) -> httpx2.Response:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(connect, "_CHECK_SECONDS", 1)
    with pytest.raises(StandardsMcpError, match="did not answer within 1 seconds"):
        await _checked(handler)


async def _checked(handler: Any) -> str:
    def client(*_: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(handler))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "_http_client", client)
        return await connect._check("https://books.example.org/mcp", "")


async def test_a_token_goes_unencrypted_to_no_proxy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.org")
    async with connect._http_client("http://127.0.0.1:8000/mcp", TOKEN) as http:
        assert not http.trust_env


@pytest.mark.parametrize("value", ["abc\ndef", "abc\u00e9", "abc\x7f"])
async def test_a_token_with_odd_characters_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, value: str
):
    monkeypatch.setenv("BOOKS_TOKEN", value)
    result = await _run("connect", "https://example.org", "--token-env", "BOOKS_TOKEN")
    assert result.exit_code == 2
    assert "BOOKS_TOKEN" in result.output
    assert "abc" not in result.output


async def test_a_variable_that_is_not_set_is_named():
    result = await _run("connect", "https://example.org", "--token-env", "NO_SUCH_TOKEN")
    assert result.exit_code == 2
    assert "NO_SUCH_TOKEN: this variable is not set here" in result.output
