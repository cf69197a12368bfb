"""Limits of one request on the wire, and the end of a connection after an early answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from itertools import repeat

import anyio
import pytest
from anyio.abc import SocketStream
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from support.hosts import MakeHost
from support.http import ACCEPT, auth_of, bearer, patient_client, requests_to, served_over_http
from support.waiting import let_time_pass

from standards_mcp import Plugin, Route, hookimpl, tool
from standards_mcp_service.tokens import new_token
from standards_mcp_service.wire import BoundedProtocol

pytestmark = pytest.mark.anyio
TOKEN, OTHER = new_token(), new_token()
MOST = 100_000
WAIT = 30
ENDLESS = "Content-Length: 10000000000"
CHUNKED = "Transfer-Encoding: chunked"
PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


class NotesPlugin(Plugin):
    @tool(read_only=True)
    def count_words(self, text: str) -> str:
        """Count."""
        return str(len(text.split()))

    @hookimpl
    def register_routes(self):
        async def echo(request: Request) -> Response:
            return PlainTextResponse(str(len(await request.body())))

        return [Route(path="/echo", function=echo, methods=("POST",))]


@pytest.fixture
async def url(make_host: MakeHost) -> AsyncGenerator[str]:
    server = {"port": 0, "rest": True, "admin": True, "max_request_bytes": MOST}
    server["auth"] = auth_of(ann=TOKEN)
    async with served_over_http(make_host({"notes": NotesPlugin}, server=server)) as found:
        yield found


async def connect(url: str) -> SocketStream:
    host, _, port = url.removeprefix("http://").partition(":")
    return await anyio.connect_tcp(host, int(port))


def head(path: str, *lines: str, method: str = "POST", token: str = TOKEN) -> bytes:
    names = {line.partition(":")[0] for line in lines}
    standard = [
        "Host: localhost",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Authorization: Bearer {token}",
    ]
    kept = [each for each in standard if each.partition(":")[0] not in names]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *kept, *lines, "", ""]).encode()


async def read_to_end(stream: SocketStream) -> bytes:
    received = b""
    with anyio.fail_after(WAIT):
        with suppress(anyio.BrokenResourceError):
            async for data in stream:
                received += data
    return received


async def exchange(url: str, *parts: bytes) -> bytes:
    """Send the parts, and read until the service closes the connection."""
    async with await connect(url) as stream:
        with anyio.fail_after(WAIT):
            for part in parts:
                await stream.send(part)
        return await read_to_end(stream)


async def send_until_closed(stream: SocketStream, block: bytes, pause: float = 0) -> None:
    with anyio.fail_after(WAIT), suppress(anyio.BrokenResourceError):
        while True:
            await stream.send(block)
            await anyio.sleep(pause)


EARLY = {
    "no token": (401, head("/mcp", ENDLESS, token=OTHER)),
    "no token, REST": (401, head("/tools/count_words", CHUNKED, token=OTHER)),
    "an unknown host": (421, head("/mcp", ENDLESS, "Host: evil.example")),
    "another origin": (403, head("/mcp", ENDLESS, "Origin: http://evil.example")),
    "too large": (413, head("/mcp", ENDLESS)),
    "no such path": (404, head("/nothing", ENDLESS)),
    "no such route": (404, head("/plugins/notes/nothing", ENDLESS)),
    "no such method": (405, head("/tools", ENDLESS)),
    "no such method of a route": (405, head("/plugins/notes/echo", ENDLESS, method="PUT")),
    "a form of another page": (403, head("/admin/tools", ENDLESS)),
    "a body of GET": (200, head("/health", ENDLESS, method="GET")),
}


async def test_an_answer_before_the_body_was_read_ends_the_connection(url: str):
    for name, (status, sent) in EARLY.items():
        answer = await exchange(url, sent)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), name
        assert answer.lower().count(b"\r\nconnection: close\r\n") == 1, name


async def test_a_body_that_turns_out_too_large_ends_the_connection(url: str):
    own = ["Origin: http://localhost", CHUNKED]
    form = ["Content-Type: application/x-www-form-urlencoded"]
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    for path in ("/mcp", "/tools/count_words", "/plugins/notes/echo", "/admin/tools"):
        more = form if path.startswith("/admin") else []
        answer = await exchange(url, head(path, *own, *more), chunk * (MOST // 0x4000 + 1))
        assert answer.startswith(b"HTTP/1.1 413 "), path
        assert b"\r\nconnection: close\r\n" in answer.lower()


async def test_nothing_is_read_for_long_after_an_early_answer(url: str):
    async with await connect(url) as stream:
        await stream.send(head("/mcp", ENDLESS, token=OTHER))
        await send_until_closed(stream, b" " * 65_536)


async def test_a_client_that_sends_on_slowly_after_an_early_answer_is_cut(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(BoundedProtocol, "linger", 0.1)
    async with await connect(url) as stream:
        await stream.send(head("/mcp", ENDLESS, token=OTHER))
        await send_until_closed(stream, b" ", 0.01)


async def test_a_client_that_sends_its_whole_body_gets_the_early_answer(url: str):
    async with patient_client(base_url=url) as client:
        for _ in range(20):
            answer = await client.post("/mcp", content=b" " * MOST)
            assert answer.status_code == 401


async def test_a_refused_request_that_is_complete_keeps_its_connection(url: str):
    whole = head("/mcp", f"Content-Length: {len(PING)}", token=OTHER) + PING
    async with await connect(url) as stream:
        for _ in range(3):
            await stream.send(whole)
            with anyio.fail_after(WAIT):
                received = await stream.receive()
            assert received.startswith(b"HTTP/1.1 401 ")
            assert b"connection: close" not in received.lower()


@pytest.mark.parametrize("token", [TOKEN, OTHER], ids=["known", "unknown"])
async def test_a_body_in_very_many_small_chunks_is_refused(url: str, token: str):
    answer = await exchange(url, head("/mcp", CHUNKED, token=token), b"1\r\n \r\n" * 10_000)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"too many small parts; send it in chunks of 256 bytes or more" in answer


async def test_a_body_in_some_small_chunks_is_served(url: str):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"text": "' + b"a " * 400 + b'"}')
    closing = head("/tools/count_words", CHUNKED, "Connection: close")
    answer = await exchange(url, closing, chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"400" in answer.rpartition(b"\r\n\r\n")[2]


async def test_a_large_body_in_chunks_of_usual_size_is_served(url: str):
    text = b'{"text": "' + b"a " * 45_000 + b'"}'
    parts = [text[at : at + 300] for at in range(0, len(text), 300)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    closing = head("/tools/count_words", CHUNKED, "Connection: close")
    answer = await exchange(url, closing, chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_the_framing_of_a_body_counts(url: str):
    chunk = b"1;" + b"x" * 2_000 + b"\r\n \r\n"
    answer = await exchange(url, head("/mcp", CHUNKED), chunk * 500)
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "sent",
    [
        head("/mcp", *(f"x{index}:" for index in range(101)), token=OTHER),
        head("/mcp", CHUNKED, token=OTHER) + b"0\r\n" + b"x:\r\n" * 102 + b"\r\n",
        head("/health/live", method="GET") + head("/mcp", *(f"x{index}:" for index in range(101))),
    ],
    ids=["headers", "trailers", "headers of a second request"],
)
async def test_a_request_with_very_many_headers_is_refused(url: str, sent: bytes):
    answer = await exchange(url, sent)
    assert b"HTTP/1.1 431 " in answer
    assert answer.endswith(b"a request may have at most 100 headers")


@pytest.mark.parametrize(
    "part",
    [
        head("/mcp", "Content-Length: 10") + b"{",
        head("/mcp", CHUNKED) + b"5\r\n{",
        head("/plugins/notes/echo", "Content-Length: 10"),
        b"POST /mcp HTTP/1.1\r\nHost: loc",
    ],
)
async def test_a_request_that_does_not_come_is_waited_for_so_long_only(
    url: str, monkeypatch: pytest.MonkeyPatch, part: bytes
):
    monkeypatch.setattr(BoundedProtocol, "seconds", 0.2)
    answer = await exchange(url, part)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nconnection: close\r\n" in answer.lower()


async def test_a_connection_without_a_request_is_closed(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(BoundedProtocol, "seconds", 0.2)
    assert await exchange(url, b"") == b""


async def test_the_time_of_a_request_begins_with_its_first_byte(url: str):
    request = head("/plugins/notes/echo", "Content-Length: 2", "Connection: close")
    close = {"connection": "close"}
    async with await connect(url) as stream, patient_client(base_url=url, headers=close) as other:
        for part in (request, b"ab"):
            # The service has accepted the connection, or read the part before.
            assert (await other.get("/health/live")).status_code == 200
            let_time_pass(20)
            await stream.send(part)
        assert (await read_to_end(stream)).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.slow
async def test_a_connection_is_used_for_several_requests(
    url: str, caplog: pytest.LogCaptureFixture
):
    async with patient_client(base_url=url, headers=ACCEPT | bearer(TOKEN)) as client:
        for text in ("one", "one two", " ".join(repeat("a", 30_000))):
            answer = await client.post("/tools/count_words", json={"text": text})
            assert str(len(text.split())) in answer.text
            assert "connection" not in answer.headers
    assert [each for each in caplog.records if each.exc_info] == []


@pytest.mark.slow
async def test_other_clients_are_served_while_one_floods(url: str):
    async def flood() -> None:
        while True:
            await exchange(url, head("/mcp", CHUNKED, token=OTHER), b"1\r\n \r\n" * 40_000)

    async with anyio.create_task_group() as tasks, patient_client(base_url=url) as client:
        tasks.start_soon(flood)
        for _ in range(10):
            with anyio.fail_after(WAIT):
                assert (await client.get("/health/live")).status_code == 200
        tasks.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/mcp", "/tools/count_words"])
async def test_a_body_with_very_many_values_is_refused_before_it_is_parsed(url: str, path: str):
    keys = b"{" + b",".join(b'"%d":1' % index for index in range(10_000)) + b"}"
    numbers = b'{"text":[' + b"1," * 30_000 + b"1"  # it is not closed
    lists = b",".join([b"[" * 150 + b"]" * 150] * 140)
    async with patient_client(base_url=url, headers=ACCEPT | bearer(TOKEN)) as client:
        sent = {"content-type": "application/json"}
        for values in (numbers, lists):
            refused = await client.post(path, content=values, headers=sent)
            assert refused.status_code == 413
            assert "more than 20,000 values" in refused.text
        within = await client.post(path, content=keys, headers=sent)
        assert within.status_code == 400


@pytest.mark.slow
async def test_commas_in_texts_are_no_values(make_host: MakeHost):
    tools = {"max_argument_values": 3}
    host = make_host({"notes": NotesPlugin}, server={"port": 0, "rest": True}, tools=tools)
    async with requests_to(host) as client:
        for text in ("a, b, ", ',\\"', '",', "\\,"):
            answer = await client.post("/tools/count_words", json={"text": text * 9_000})
            assert answer.status_code == 200, text
