"""Malformed and hostile HTTP requests: a correct status or a closed connection, and no crash."""

# ruff: noqa: S311  chance, for messages
from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, Final

import anyio
import pytest
from pydantic import Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from support.hosts import MakeHost
from support.http import ACCEPT, MODERN, auth_of, bearer, patient_client, rpc, served_over_http

from standards_mcp import Plugin, Prompt, Resource, Route, hookimpl, tool
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ALL, NONE = new_token(), new_token()
SEEDS: Final = range(5)
EACH: Final = 200
SECONDS: Final = 90
ODD_PATHS: Final = """
    /mcp /mcp /mcp /mcp/ //mcp /mcp/../mcp /mcp%00 /mcp?a=b#c * /tools /tools/echo
    /tools/%2e%2e/echo /tools/echo%0d%0aX-A:%20b /secret.echo /plugins/odd/echo
    /plugins/odd/../odd/echo /plugins//echo /plugins/odd/%2e%2e /health /health/live
    /openapi.json /docs/assets/../../etc/passwd /\xff http://other.example/mcp
    /docs/assets/%2e%2e/%2e%2e/pyproject.toml
"""
PATHS: Final = (*ODD_PATHS.split(), "/" * 99, "/x" * 20_000, "")
METHODS: Final = (*["POST"] * 3, "GET", "DELETE", "PUT", "OPTIONS", "TRACE", "X", "post", "")
HEADERS: Final = (
    *(f"Content-Length: {length}" for length in ("0", "5", "-1", "99999999999", "+5", "5, 5")),
    *(f"Transfer-Encoding: {coding}" for coding in ("chunked", "xchunked", "chunked, x")),
    *("Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding : chunked"),
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    *("Content-Type: text/plain", "Content-Type: application/json\r\n folded: x", "Content-Type:"),
    *("Mcp-Session-Id: x", f"Mcp-Session-Id: {'y' * 5000}", "Mcp-Session-Id: \xff\x00"),
    *("Mcp-Protocol-Version: 1999-01-01", "Mcp-Protocol-Version: 2026-07-28", "Last-Event-Id: 7"),
    *("Mcp-Method: tools/call", "Mcp-Name: echo", "Expect: 100-continue", "Upgrade: websocket"),
    *("Accept: */*", "Accept:", "Accept-Encoding: gzip;q=nan", "Connection: close, upgrade"),
    *("Origin: null", "Origin: http://[", "Host: [", "Host: evil.example", "X: a\r\nHost: b"),
    *("Authorization: Bearer", "Authorization: Basic !!!", "Authorization: Bearer x y", ": empty"),
    *("no colon", "\x00: \x00", "Cookie: " + "c" * 70_000),
)
BODIES: Final = (
    *(b"", b"{", b"null", b"[]", b"[[]]", b"{}" * 99, b"\xff\xfe", b"[" * 5000, b'{"a":' * 5000),
    *(b"5\r\nabcde\r\n0\r\n\r\n", b"zz\r\nabc", b"ffffffffffffffff\r\nabc"),
    b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
)


class OddPlugin(Plugin):
    """A tool, a prompt, a resource and a route that nobody without a scope may reach."""

    @tool(name="secret.echo", read_only=True)
    def echo(self, text: Annotated[str, Field(max_length=9)] = "") -> str:
        """Echo."""
        return text

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="secret_ask", description="Ask", function=lambda: "secret")]

    @hookimpl
    def register_resources(self):
        return [
            Resource(uri="secret://all", name="secret_all", description="x", function=lambda: "a")
        ]

    async def answer(self, _: Request) -> Response:
        return PlainTextResponse("secret")

    @hookimpl
    def register_routes(self) -> list[Route]:
        return [Route(path="/echo", function=self.answer, methods=("GET", "POST"))]


@pytest.fixture
async def url(make_host: MakeHost) -> AsyncGenerator[str]:
    server = {"port": 0, "rest": True, "max_sessions": 20, "max_request_bytes": 10_000}
    server["auth"] = auth_of({"empty": []}, all=ALL, none=(NONE, "empty"))
    async with served_over_http(make_host({"odd": OddPlugin}, server=server)) as found:
        yield found


def message(chance: random.Random) -> bytes:
    """Return a request that is wrong in one or several ways."""
    headers = [*chance.sample(HEADERS, chance.randrange(4))]
    if chance.random() < 0.8:
        headers.append(f"Authorization: Bearer {ALL}")
    if chance.random() < 0.8:
        headers.append("Host: localhost")
    if chance.random() < 0.5:
        headers.append("Accept: application/json, text/event-stream")
    body = chance.choice(BODIES) if chance.random() < 0.6 else odd_json(chance)
    if chance.random() < 0.6:
        headers += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
    version = "1.1" if chance.random() < 0.9 else chance.choice(["0.9", "1.0", "2.0", "x"])
    first = f"{chance.choice(METHODS)} {chance.choice(PATHS)} HTTP/{version}"
    head = "\r\n".join([first, *headers, "Connection: close", "", ""]).encode("latin-1")
    whole = bytearray(head + body)
    if chance.random() < 0.2:
        whole[chance.randrange(len(whole))] = chance.randrange(256)
    if chance.random() < 0.1:
        del whole[chance.randrange(len(whole)) :]
    return bytes(whole)


def odd_json(chance: random.Random) -> bytes:
    """Return a message of JSON-RPC of which some parts are not what they should be."""
    odd: list[Any] = [None, -1, 1e300, "", "\x00", [], {}, "x" * 999, True, {"a": {"b": []}}]
    methods = ["initialize", "tools/call", "tools/list", "resources/read", "prompts/get", "x"]
    parts: dict[str, Any] = {
        "jsonrpc": chance.choice(["2.0", "2.0", "2.0", *odd]),
        "id": chance.choice([1, "a", *odd]),
        "method": chance.choice([*methods, *methods, *odd]),
        "params": chance.choice([{"name": "secret.echo", "arguments": chance.choice(odd)}, *odd]),
    }
    for name in chance.sample(sorted(parts), chance.randrange(3)):
        del parts[name]
    return json.dumps(parts if chance.random() < 0.9 else [parts, parts]).encode()


async def answer_to(url: str, sent: bytes) -> bytes:
    """Return what comes until the service closes the connection; half of it is closed here."""
    received = bytearray()
    stream = await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2]))
    async with stream:
        try:
            await stream.send(sent)
            await stream.send_eof()
            async for part in stream:
                received += part
        except (anyio.BrokenResourceError, ConnectionError):
            pass
    return bytes(received)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_malformed_messages_are_refused_and_nothing_crashes(
    url: str, seed: int, caplog: pytest.LogCaptureFixture
):
    chance = random.Random(seed)
    for number in range(EACH):
        sent = message(chance)
        with anyio.fail_after(SECONDS):
            received = await answer_to(url, sent)
        final = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        status = int(final.split()[1]) if final else 0
        assert status == 0 or 200 <= status < 500, (seed, number, sent[:300], received[:300])
    async with patient_client(base_url=url) as client:
        assert (await client.get("/health/live")).status_code == 200
    crashes = [each for each in caplog.records if each.exc_info]
    assert not crashes, (seed, crashes[0].getMessage(), crashes[0].exc_text)
    assert ALL not in caplog.text


@pytest.mark.parametrize(
    "smuggled",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n%s",
        b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n%s",
        b"Content-Length: 0\r\n\r\n%s",
        b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n%s",
        b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n%s",
    ],
    ids=range(6),
)
async def test_a_request_behind_another_one_needs_a_token_of_its_own(url: str, smuggled: bytes):
    head = b"POST /tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" % ALL.encode()
    second = b"GET /tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with anyio.fail_after(SECONDS):
        received = await answer_to(url, head + smuggled.replace(b"%s", second))
    assert b"secret_echo" not in received
    assert received.count(b"HTTP/1.1 200") == 0


SPELLINGS = (
    "POST /tools/secret.echo",
    "POST /tools/secret_echo",
    "POST /tools/SECRET.ECHO",
    "POST /secret.echo",
    "POST /secret%2eecho",
    "POST /tools/secret%2Eecho",
    "POST /tools/%73ecret.echo",
    "GET /plugins/odd/echo",
    "GET /plugins/%6fdd/echo",
    "HEAD /plugins/odd/echo",
)


async def test_no_spelling_of_a_name_evades_a_scope(url: str):
    async with patient_client(base_url=url) as client:
        for spelling in SPELLINGS:
            request = partial(client.request, *spelling.split(), json={"text": "a"})
            assert (await request(headers=bearer(NONE))).status_code in (403, 404), spelling
            status = (await request(headers=bearer(ALL))).status_code
            assert status == (404 if "SECRET" in spelling else 200), spelling
        for page in ("/tools", "/openapi.json"):
            assert "secret" not in (await client.get(page, headers=bearer(NONE))).text


async def test_no_method_of_mcp_evades_a_scope(url: str):
    shared = {**ACCEPT, **bearer(NONE), "mcp-protocol-version": "2026-07-28"}
    argument = {"name": "a", "value": ""}
    completed = {"ref": {"type": "ref/resource", "uri": "secret://all"}, "argument": argument}
    async with patient_client(base_url=url, headers=shared) as client:
        for method, named, params in (
            ("tools/call", "secret.echo", {"name": "secret.echo", "arguments": {}}),
            ("tools/call", "secret_echo", {"name": "secret_echo", "arguments": {}}),
            ("prompts/get", "secret_ask", {"name": "secret_ask"}),
            ("resources/read", "secret://all", {"uri": "secret://all"}),
            ("resources/subscribe", "", {"uri": "secret://all"}),
            ("completion/complete", "", completed),
        ):
            headers = {"mcp-method": method, **({"mcp-name": named} if named else {})}
            message = rpc(method, **params, _meta=MODERN)
            answer = await client.post("/mcp", json=message, headers=headers)
            assert '"error"' in answer.text, method
            assert "result" not in answer.json()


async def test_slow_and_half_open_connections_do_not_block_other_callers(url: str):
    port = int(url.rpartition(":")[2])
    held = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(100)]
    try:
        for stream in held:
            await stream.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n")
        async with patient_client(base_url=url, headers=bearer(ALL)) as client:
            for _ in range(20):
                with anyio.fail_after(SECONDS):
                    assert (await client.post("/tools/secret_echo", json={})).status_code == 200
    finally:
        for stream in held:
            await stream.aclose()


async def test_nothing_that_a_client_sends_makes_lines_of_the_log(
    url: str, capfd: pytest.CaptureFixture[str]
):
    async with patient_client(base_url=url, headers=bearer(ALL)) as client:
        for name in ("a%0a%7b%22event%22%3a%22forged%22%7d", "a%0d%0aforged", "%1b[31mforged"):
            answer = await client.post(f"/tools/{name}", json={})
            assert answer.status_code == 404
            assert all("\n" not in value for value in answer.headers.values())
    assert "\nforged" not in capfd.readouterr().err
