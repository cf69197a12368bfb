"""Tokens of an authorization server."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from support.hosts import MakeHost, names_of
from support.http import (
    ACCEPT,
    MODERN,
    auth_of,
    bearer,
    http_client,
    open_session,
    patient_client,
    requests_to,
    rpc,
    served_over_http,
)
from support.waiting import WAIT, let_time_pass, until
from support.web_server import QuietHandler, in_thread

from standards_mcp import CallContext, Plugin, Route, hookimpl, prompt, resource, skill, tool
from standards_mcp.calls.call import CallRecord
from standards_mcp.config.loading import load_settings
from standards_mcp.contributions.selection import EVERYTHING
from standards_mcp.host import Host
from standards_mcp_service import jwt_tokens as tokens
from standards_mcp_service.authorization import access_of
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
AUDIENCE = "https://mcp.example.org/mcp"
KEYS = {
    "one": rsa.generate_private_key(65537, 2048),
    "two": ec.generate_private_key(ec.SECP256R1()),
}
STRANGER = rsa.generate_private_key(65537, 2048)


class BooksPlugin(Plugin):
    @tool(read_only=True)
    async def find_book(self, context: CallContext) -> str:
        """Find."""
        return context.caller

    @tool
    def drop_book(self) -> str:
        """Drop."""
        return "dropped"


class PagesPlugin(Plugin):
    async def page(self, request: Request) -> Response:
        return JSONResponse(request.auth.scopes)

    @hookimpl
    def register_routes(self) -> list[Route]:
        return [
            Route(path="/own", function=self.page),
            Route(path="/page", function=self.page, scope="pages"),
        ]


class Issuer(http.server.ThreadingHTTPServer):
    """An authorization server: its OpenID configuration, and its keys.

    Attributes:
        kids: The ids of the keys that it shows.
        is_down: It answers nothing.
        may_answer: Answers wait for it.
        drips: Answers come byte by byte, without an end.
        asked: How often its keys were asked for.
        floods: What answers repeat without an end.
        encoding: How it says that this is compressed.
        sent: How many bytes of it were sent.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kids, self.is_down, self.asked = ["one"], False, 0
        self.drips = threading.Event()
        self.floods, self.encoding, self.sent = b"", "", 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def page(self, path: str) -> dict[str, Any]:
        if path.endswith("openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        self.asked += 1
        return {"keys": [public_key(kid) for kid in self.kids]}

    def token(self, *, kid: str = "one", key: Any = None, alg: str = "RS256", **claims: Any) -> str:
        now = int(time.time())
        given = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "exp": now + 600}
        given["scope"] = "reader"
        wanted = {name: value for name, value in (given | claims).items() if value is not None}
        return jwt.encode(wanted, key or KEYS[kid], alg, {"kid": kid})


class _Handler(QuietHandler):
    server: Issuer

    def do_GET(self) -> None:  # noqa: N802
        self.server.may_answer.wait(WAIT)
        if self.server.drips.is_set():
            self.drip()
            return
        if self.server.floods:
            self.flood()
        elif self.server.is_down:
            self.reply(503)
        else:
            self.reply(200, json.dumps(self.server.page(self.path)).encode())

    def flood(self) -> None:
        self.send_response(200)
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()
        with suppress(OSError):  # the client has had enough
            while self.server.floods:
                self.server.sent += self.wfile.write(self.server.floods)

    def drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with suppress(OSError):  # the client has had enough
            while self.server.drips.is_set():
                self.wfile.write(b" ")
                time.sleep(0.05)


def public_key(kid: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.ECAlgorithm if kid == "two" else jwt.algorithms.RSAAlgorithm
    return algorithm.to_jwk(KEYS[kid].public_key(), as_dict=True) | {"kid": kid}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with in_thread(Issuer()) as server:
        yield server
        server.may_answer.set()
        server.drips.clear()


@pytest.fixture
def served(make_host: MakeHost, issuer: Issuer) -> MakeHost:
    """Return a function that makes a host which takes the issuer's tokens, with these scopes."""

    def make(scopes: dict[str, Any], plugin: type[Plugin] = BooksPlugin, **server: Any) -> Host:
        auth = {"jwt": {"issuer": issuer.url, "audience": AUDIENCE}, "scopes": scopes}
        return make_host({"profile": plugin}, server={"port": 0, "auth": auth, **server})

    return make


@pytest.fixture
def host(served: MakeHost) -> Host:
    return served({"reader": ["find_*"]})


async def status(url: str, token: str) -> int:
    async with patient_client(base_url=url) as client:
        return (await client.get("/health", headers=bearer(token))).status_code


async def test_a_token_of_the_issuer_lists_only_the_tools_of_its_scopes(host: Host, issuer: Issuer):
    async with served_over_http(host) as url:
        for scopes in ({"scope": "openid reader"}, {"scope": None, "scp": ["reader"]}):
            async with http_client(url, issuer.token(**scopes)) as client:
                assert await names_of(client) == ["find_book"]
                answer = await client.call_tool("find_book", {})
                assert answer.content[0].text == f"{issuer.url}:ann"
        async with http_client(url, issuer.token(scope="*")) as client:
            assert (await client.list_tools()).tools == [], "what means all is for the file only"


async def test_a_scope_that_the_configuration_does_not_have_opens_no_route(
    served: MakeHost, issuer: Issuer
):
    host = served({"pages": []}, PagesPlugin)
    token = issuer.token(scope="openid profile pages")
    async with (
        served_over_http(host) as url,
        patient_client(base_url=f"{url}/plugins/profile", headers=bearer(token)) as client,
    ):
        assert (await client.get("/own")).status_code == 403, "a usual scope is no scope here"
        assert (await client.get("/page")).json() == ["pages"]


@pytest.mark.slow
async def test_signing_in_makes_an_operator_only_with_a_configured_scope(
    served: MakeHost, issuer: Issuer
):
    for scopes, tools, statuses in (
        ({}, 2, {"openid": [403, 403], "*": [403, 403], "admin metrics": [403, 403]}),
        ({"admin": []}, 0, {"openid": [403, 403], "admin metrics": [200, 403]}),
    ):
        books = served(scopes, admin=True, metrics=True)
        async with served_over_http(books) as url, patient_client(base_url=url) as http:
            async with http_client(url, issuer.token(scope="openid")) as client:
                assert len((await client.list_tools()).tools) == tools
            for scope, expected in statuses.items():
                headers = bearer(issuer.token(scope=scope))
                pages = [await http.get(page, headers=headers) for page in ("/admin", "/metrics")]
                assert [page.status_code for page in pages] == expected, scope


def odd_tokens(issuer: Issuer) -> dict[str, str]:
    now = int(time.time())
    public = KEYS["one"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    good = issuer.token()
    head, body, signature = good.split(".")
    forged = jwt.api_jws.base64url_encode(
        json.dumps(jwt.decode(good, options={"verify_signature": False}) | {"sub": "bob"}).encode()
    ).decode()
    secret = jwt.api_jws.base64url_encode(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    signing = f"{secret.decode()}.{body}"
    confused = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        signing.encode(), public
    )
    return {
        "expired": issuer.token(exp=now - 600),
        "not yet": issuer.token(nbf=now + 600),
        "for ever": issuer.token(exp=None),
        "of nobody": issuer.token(sub=None),
        "for others": issuer.token(aud="https://other.example.org"),
        "for nobody": issuer.token(aud=None),
        "of others": issuer.token(iss="https://other.example.org"),
        "forged": f"{head}.{forged}.{signature}",
        "unsigned": jwt.encode({"sub": "ann"}, None, "none", {"kid": "one"}),
        "stranger": issuer.token(key=STRANGER),
        "unknown key": issuer.token(kid="gone", key=STRANGER),
        "key confusion": f"{signing}.{jwt.api_jws.base64url_encode(confused).decode()}",
        "cut": good[:-10],
        "long": good + "x" * 20_000,
        "dots": "..",
        "nothing": "a.b.c",
    }


@pytest.mark.slow
async def test_no_other_token_gets_in(host: Host, issuer: Issuer):
    async with served_over_http(host) as url:
        assert await status(url, issuer.token()) == 200
        for name, token in odd_tokens(issuer).items():
            assert await status(url, token) == 401, name


@pytest.mark.slow
async def test_new_keys_are_fetched_and_not_more_often_than_needed(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    async with served_over_http(host) as url:
        assert await status(url, issuer.token()) == 200
        issuer.kids = ["two"]
        rotated = issuer.token(kid="two", alg="ES256")
        for _ in range(3):
            assert await status(url, rotated) == 401
        assert issuer.asked == 1
        monkeypatch.setattr(tokens, "_RETRY_SECONDS", 0)
        assert await status(url, rotated) == 200
        assert await status(url, issuer.token()) == 401, "its key is withdrawn"


@pytest.mark.slow
async def test_a_token_with_a_cached_key_does_not_wait_for_a_slow_issuer(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    stranger = issuer.token(kid="gone", key=STRANGER)
    refused = list[int]()

    async def ask_as_stranger(url: str) -> None:
        refused.append(await status(url, stranger))

    async with served_over_http(host) as url, anyio.create_task_group() as tasks:
        assert await status(url, issuer.token()) == 200
        monkeypatch.setattr(tokens, "_RETRY_SECONDS", 0)
        monkeypatch.setattr(tokens, "_FRESH_SECONDS", 0)
        issuer.may_answer.clear()
        for _ in range(3):
            tasks.start_soon(ask_as_stranger, url)
        for _ in range(3):
            assert await status(url, issuer.token()) == 200
        assert refused == []
        monkeypatch.setattr(tokens, "_RETRY_SECONDS", 60)
        issuer.may_answer.set()
        await until(lambda: refused == [401] * 3)
    assert issuer.asked == 2, "all of them wait for one answer"


@pytest.mark.slow
async def test_an_answer_without_an_end_is_given_up(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tokens, "_FETCH_SECONDS", 0.3)
    monkeypatch.setattr(tokens, "_RETRY_SECONDS", 0)
    issuer.drips.set()
    async with served_over_http(host) as url:
        with anyio.fail_after(WAIT):
            assert await status(url, issuer.token()) == 401
        issuer.drips.clear()
        monkeypatch.setattr(tokens, "_FETCH_SECONDS", WAIT)
        assert await status(url, issuer.token()) == 200


@pytest.mark.parametrize(("encoding", "limit"), [("", 1 << 24), ("gzip, gzip", 3 << 19)])
async def test_an_issuer_cannot_fill_the_memory(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, encoding: str, limit: int
):
    monkeypatch.setattr(tokens, "_RETRY_SECONDS", 0)
    issuer.floods = b" " * (1 << 16)
    if encoding:
        issuer.floods = gzip.compress(gzip.compress(bytes(1 << 26)))  # 64 MiB in 300 bytes
    issuer.encoding = encoding
    async with served_over_http(host) as url:
        tracemalloc.start()
        assert await status(url, issuer.token()) == 401
        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most_bytes < limit
        issuer.floods = b""
        assert await status(url, issuer.token()) == 200
    assert issuer.sent < 1 << 24


async def test_after_an_idle_time_a_withdrawn_key_is_refused(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    async with served_over_http(host) as url:
        assert await status(url, issuer.token()) == 200
        issuer.kids = ["two"]
        for each in ("_RETRY_SECONDS", "_FRESH_SECONDS", "_IDLE_SECONDS"):
            monkeypatch.setattr(tokens, each, 0)
        assert await status(url, issuer.token()) == 401


@pytest.mark.slow
async def test_a_key_is_for_the_algorithm_that_it_names_or_the_usual_one_of_its_type(
    host: Host, issuer: Issuer
):
    issuer.kids = ["one", "two"]
    async with served_over_http(host) as url:
        for kid, alg, expected in (("one", "RS256", 200), ("one", "PS256", 401)):
            assert await status(url, issuer.token(kid=kid, alg=alg)) == expected, alg
        assert await status(url, issuer.token(kid="two", alg="ES256")) == 200
        for kid, key in (("one", KEYS["two"]), ("two", KEYS["one"])):
            alg = "ES256" if kid == "one" else "RS256"
            assert await status(url, issuer.token(kid=kid, key=key, alg=alg)) == 401, kid


@pytest.mark.slow
async def test_a_key_of_a_kind_that_is_not_taken_is_passed_by(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    odd = {
        "secret": {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMw"},
        "hmac": public_key("one") | {"alg": "HS256"},
        "none": public_key("one") | {"alg": "none"},
        "empty": {"kty": "RSA"},
        "curve": {"kty": "EC", "crv": "secp256k1"},
    }
    keys = [key | {"kid": kid} for kid, key in odd.items()]
    page = {"keys": [*keys, public_key("one")], "jwks_uri": f"{issuer.url}/keys"}
    monkeypatch.setattr(issuer, "page", lambda _: page)
    async with served_over_http(host) as url:
        for kid in odd:
            assert await status(url, issuer.token(kid=kid, key=KEYS["one"])) == 401, kid
        assert await status(url, issuer.token()) == 200


async def test_keys_of_an_issuer_at_this_machine_come_from_no_other_unencrypted_address(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(issuer, "page", lambda _: {"jwks_uri": "http://evil.example/keys"})
    async with served_over_http(host) as url:
        assert await status(url, issuer.token()) == 401
    (record,) = [each for each in caplog.records if "cannot be read" in each.getMessage()]
    assert "'http://evil.example/keys' is not an https address" in str(record.__dict__["reason"])


async def test_while_the_issuer_is_down_its_last_keys_count(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tokens, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(tokens, "_FRESH_SECONDS", 0)
    async with served_over_http(host) as url:
        issuer.is_down = True
        assert await status(url, issuer.token()) == 401
        issuer.is_down = False
        assert await status(url, issuer.token()) == 200
        issuer.is_down = True
        assert await status(url, issuer.token()) == 200


async def test_clients_learn_whose_tokens_they_need(host: Host, issuer: Issuer):
    async with requests_to(host) as client:
        refused = await client.post("/mcp", json={})
        path = "/.well-known/oauth-protected-resource/mcp"
        assert (
            f'resource_metadata="https://mcp.example.org{path}"'
            in refused.headers["www-authenticate"]
        )
        told = (await client.get(path)).json()
    assert told == {
        "resource": AUDIENCE,
        "authorization_servers": [issuer.url],
        "scopes_supported": ["reader"],
        "bearer_methods_supported": ["header"],
    }, "letter by letter, as they are configured"


ANN = new_token()
SCOPES = {
    "reader": ["find_*"],
    "writer": ["drop_*"],
    "narrow": {"names": ["drop_*"], "profile": "none"},
}


def call_of(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return rpc("tools/call", name=tool, arguments=arguments, _meta=MODERN)


def named(name: str) -> dict[str, str]:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name}
    return ACCEPT | headers


@pytest.mark.parametrize("server", [{}, {"stateless": True}, {"json_response": True}], ids=str)
async def test_a_call_that_needs_another_scope_names_it_before_it_is_dispatched(
    make_host: MakeHost, issuer: Issuer, server: dict[str, Any]
):
    auth = {"jwt": {"issuer": issuer.url, "audience": AUDIENCE}, "scopes": SCOPES}
    host = make_host(
        {"books": BooksPlugin},
        server={"port": 0, "auth": auth, **server},
        profiles={"none": {"plugins": ["none"]}},
    )
    reader, both = bearer(issuer.token()), bearer(issuer.token(scope="reader writer"))
    async with requests_to(host) as client:
        refused = await client.post(
            "/mcp", json=call_of("drop_book"), headers=named("drop_book") | reader
        )
        assert refused.status_code == 403
        challenge = refused.headers["www-authenticate"]
        assert challenge.startswith('Bearer error="insufficient_scope", scope="writer", ')
        metadata = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{metadata}"' in challenge
        assert refused.json()["error"] == "insufficient_scope"
        for headers, tool, status in (
            (both, "drop_book", 200),
            (reader, "find_book", 200),
            (reader, "no_such_tool", 400),
        ):
            answer = await client.post("/mcp", json=call_of(tool), headers=named(tool) | headers)
            assert answer.status_code == status, answer.text
        if not server.get("stateless"):
            session = await open_session(client, issuer.token())
            call = rpc("tools/call", name="drop_book", arguments={})
            earlier = await client.post("/mcp", json=call, headers=session | reader)
            assert earlier.status_code == 403, "the body names the tool"


async def test_refusals_fill_no_cache_and_follow_the_configuration(
    make_host: MakeHost, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("standards_mcp_service.step_up._MAX_TRIALS", 3)
    scopes = {"reader": ["find_*"], "writer": ["drop_*"]}
    scopes |= {f"other{number}": [f"other{number}_*"] for number in range(5)}
    auth = {"jwt": {"issuer": issuer.url, "audience": AUDIENCE}, "scopes": scopes}
    host = make_host({"books": BooksPlugin}, server={"port": 0, "auth": auth})
    reader = bearer(issuer.token())
    challenges: list[str] = []
    async with requests_to(host) as client:
        for allowed in (["drop_*"], ["drop_*"], ["none"]):
            auth["scopes"]["writer"] = allowed
            loaded = load_settings(overrides={"server": {"port": 0, "auth": auth}})
            host.take_over(loaded, loaded.settings)
            refused = await client.post(
                "/mcp", json=call_of("drop_book"), headers=named("drop_book") | reader
            )
            challenges.append(refused.headers.get("www-authenticate", ""))
    assert ['scope="writer"' in challenge for challenge in challenges] == [True, True, False]
    reader_only = access_of({"reader"}, host.settings.server.auth)
    assert host.selections().keys() <= {EVERYTHING, reader_only}


async def test_a_call_through_the_search_for_tools_needs_the_scope_of_the_tool(
    make_host: MakeHost, issuer: Issuer
):
    auth = {"jwt": {"issuer": issuer.url, "audience": AUDIENCE}, "scopes": SCOPES}
    tools = {"discovery": "search", "search_writing": True}
    profiles = {"none": {"plugins": ["none"]}}
    host = make_host(
        {"books": BooksPlugin}, server={"port": 0, "auth": auth}, tools=tools, profiles=profiles
    )
    headers = named("call_tool") | bearer(issuer.token())
    async with requests_to(host) as client:
        for tool, status in (("drop_book", 403), ("find_book", 200), ("no_such_tool", 200)):
            message = call_of("call_tool", name=tool)
            answer = await client.post("/mcp", json=message, headers=headers)
            assert answer.status_code == status, answer.text


class LibraryPlugin(Plugin):
    def complete(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return [typed, *others]

    @tool(read_only=True)
    def find_shelf(self) -> str:
        """Find."""
        return "found"

    @prompt(needs=("find_shelf",), complete={"topic": complete})
    def plan(self, topic: str = "", *, tools: Mapping[str, str]) -> str:
        """Plan."""
        return f"{topic} {tools}"

    @resource("shelf://{topic}", complete={"topic": complete})
    def shelf(self, topic: str) -> str:
        """Read."""
        return topic

    @skill(needs=("find_shelf",))
    def tidy(self) -> str:
        return "---\nname: tidy\ndescription: Tidy.\n---\n"


LIBRARY_SCOPES = {
    "finder": ["find_*"],
    "planner": ["plan"],
    "reader": ["shelf"],
    "tidier": {"names": ["tidy"]},
    "everything": {"names": ["*"], "profile": "none"},
}
TIDY = "skill://tidy/SKILL.md"
ARGUMENT = {"name": "topic", "value": ""}


@pytest.mark.parametrize(
    ("method", "params", "held", "needed"),
    [
        ("prompts/get", {"name": "plan"}, "finder", "finder planner"),
        ("prompts/get", {"name": "plan"}, "planner", "finder planner"),
        ("prompts/get", {"name": "plan"}, "reader", "finder planner"),
        ("prompts/get", {"name": "plan"}, "unknown", "finder planner"),
        ("prompts/get", {"name": "plan"}, "finder planner", ""),
        ("prompts/get", {"name": "other"}, "reader", ""),
        ("resources/read", {"uri": "shelf://3"}, "finder", "reader"),
        ("resources/read", {"uri": "shelf://3"}, "reader", ""),
        ("resources/read", {"uri": "other://3"}, "finder", ""),
        ("resources/read", {"uri": TIDY}, "finder", "finder tidier"),
        ("resources/read", {"uri": TIDY}, "reader", "finder tidier"),
        ("resources/read", {"uri": TIDY}, "finder tidier", ""),
        ("skills/get", {"uri": TIDY}, "tidier", "finder tidier"),
        ("skills/get", {"uri": "skill://tidy"}, "tidier", ""),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": ARGUMENT},
            "finder",
            "finder planner",
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "shelf://{topic}"}, "argument": ARGUMENT},
            "finder",
            "reader",
        ),
        ("tools/call", {"name": "find_shelf"}, "reader", "finder"),
    ],
    ids=str,
)
async def test_each_operation_names_all_scopes_that_it_needs(
    make_host: MakeHost, issuer: Issuer, method: str, params: Any, held: str, needed: str
):
    auth = {"jwt": {"issuer": issuer.url, "audience": AUDIENCE}, "scopes": LIBRARY_SCOPES}
    profiles = {"none": {"plugins": ["none"]}}
    host = make_host(
        {"library": LibraryPlugin}, server={"port": 0, "auth": auth}, profiles=profiles
    )
    seen = Refusals()
    host.observe(seen)
    name = params.get("name") or params.get("uri") or ""
    headers = ACCEPT | {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    headers |= {"mcp-name": name} if name else {}
    async with requests_to(host) as client:
        token = issuer.token(scope=held)
        message = rpc(method, **params, _meta=MODERN)
        answer = await client.post("/mcp", json=message, headers=headers | bearer(token))
        if needed:
            assert answer.status_code == 403, answer.text
            assert f'scope="{needed}"' in answer.headers["www-authenticate"]
            assert answer.json()["scope"] == needed
            assert [each.rpartition(" ")[2] for each in seen.names] == ["not_served"]
            token = issuer.token(scope=needed)
            answer = await client.post("/mcp", json=message, headers=headers | bearer(token))
            assert answer.status_code == 200, "these scopes are enough"
        else:
            assert answer.status_code in (200, 400), answer.text
            assert "www-authenticate" not in answer.headers


async def test_a_call_over_rest_that_needs_another_scope_names_it(
    make_host: MakeHost, issuer: Issuer
):
    auth = auth_of(SCOPES, ann=(ANN, "reader"))
    auth["jwt"] = {"issuer": issuer.url, "audience": AUDIENCE}
    host = make_host(
        {"books": BooksPlugin},
        server={"port": 0, "auth": auth, "rest": True},
        profiles={"none": {"plugins": ["none"]}},
    )
    seen = Refusals()
    host.observe(seen)
    async with requests_to(host) as client:
        for token, path, status in (
            (issuer.token(), "/tools/drop_book", 403),
            (issuer.token(), "/tools/find_book", 200),
            (issuer.token(), "/tools/no_such_tool", 404),
            (issuer.token(scope="reader writer"), "/tools/drop_book", 200),
            (ANN, "/tools/drop_book", 404),
        ):
            answer = await client.post(path, json={}, headers=bearer(token))
            assert answer.status_code == status, answer.text
            if status == 403:
                assert 'scope="writer"' in answer.headers["www-authenticate"]
                assert answer.json()["error"] == "insufficient_scope"
    assert [each for each in seen.names if each.endswith("not_served")] == [
        "drop_book not_served",
        "no_such_tool not_served",
        "drop_book not_served",
    ]


class Refusals:
    def __init__(self) -> None:
        self.names: list[str] = []

    def call_started(self, record: CallRecord) -> None:
        pass

    def call_ended(self, record: CallRecord) -> None:
        self.names.append(f"{record.name} {record.outcome}")


async def test_refused_calls_are_logged_and_counted_and_other_tokens_learn_of_no_tool(
    make_host: MakeHost, issuer: Issuer
):
    auth = auth_of({"reader": ["find_*"], "writer": ["drop_*"]}, ann=(ANN, "reader"))
    auth["jwt"] = {"issuer": issuer.url, "audience": AUDIENCE}
    tools = {"rate_limit": "2/hour"}
    host = make_host({"books": BooksPlugin}, server={"port": 0, "auth": auth}, tools=tools)
    seen = Refusals()
    host.observe(seen)
    statuses: list[int] = []
    async with requests_to(host) as client:
        for token in (issuer.token(), issuer.token(), issuer.token(), ANN):
            headers = named("drop_book") | bearer(token)
            answer = await client.post("/mcp", json=call_of("drop_book"), headers=headers)
            statuses.append(answer.status_code)
    assert statuses == [403, 403, 200, 400]
    assert "Unknown tool" in answer.text
    assert seen.names == ["drop_book not_served"] * 4


@pytest.mark.parametrize(
    "body",
    [
        b'{"method": "tools/call", "params": []}',
        b'{"method": "tools/call", "params": {"name": 5}}',
        b'{"method": "tools/call", "params": {"name": "drop_book", "arguments": [1]}}',
        b'{"method": "prompts/get", "params": {"name": ["plan"]}}',
        b'{"method": "resources/read", "params": {"uri": {}}}',
        b'{"method": "completion/complete", "params": {"ref": "plan"}}',
        b'{"method": ["skills/get"], "params": {}}',
        b'{"method": "tools/call"',
        b'["tools/call"]',
        b"5 tools",
    ],
)
async def test_odd_requests_are_left_to_the_protocol(host: Host, issuer: Issuer, body: bytes):
    headers = named("drop_book") | bearer(issuer.token()) | {"content-type": "application/json"}
    async with requests_to(host) as client:
        assert (await client.post("/mcp", content=body, headers=headers)).status_code in (400, 202)


@pytest.mark.slow
async def test_a_stream_ends_when_the_token_that_opened_it_expires(
    host: Host, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tokens, "_LEEWAY_SECONDS", 0)
    async with requests_to(host, timeout=None) as client:
        session = await open_session(client, issuer.token())
        short, now = bearer(issuer.token()), time.time
        async with client.stream("GET", "/mcp", headers=session | short) as stream:
            assert stream.status_code == 200
            monkeypatch.setattr(time, "time", lambda: now() + 700)
            let_time_pass(700)
            assert [line async for line in stream.aiter_lines()] == []
        ping = rpc("ping")
        expired = await client.post("/mcp", json=ping, headers=session | short)
        renewed = await client.post("/mcp", json=ping, headers=session | bearer(issuer.token()))
        assert (expired.status_code, renewed.status_code) == (401, 200)
