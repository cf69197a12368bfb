"""The service over HTTP: both generations, access, and its end."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncGenerator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx2
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError
from support.hosts import MakeHost, names_of
from support.http import (
    ACCEPT,
    INITIALIZE,
    MODERN,
    auth_of,
    bearer,
    call_anew,
    client_of,
    http_client,
    open_session,
    patient_client,
    refused_clients,
    requests_to,
    rpc,
    served_over_http,
    told_url,
)
from support.peer import COMMAND, Peer
from support.waiting import WAIT, until

from standards_mcp import CallContext, Plugin, Prompt, Resource, hookimpl, tool
from standards_mcp.cli import cli
from standards_mcp.config.loading import Sources
from standards_mcp.config.models.http import AuthSettings, HttpSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.host import Host
from standards_mcp_service.authorization import access_of
from standards_mcp_service.listening import check_exposure, listen
from standards_mcp_service.tokens import new_token, token_hash

OIDC = {
    "issuer": "https://login.example.org",
    "client_id": "standards",
    "public_url": "https://mcp.example.org",
    "groups": {"staff": ["admin"]},
}
pytestmark = pytest.mark.anyio
ANN, BOB, CAROL = (new_token() for _ in range(3))
HASH = "0" * 64
MODERN_HEADERS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "no/such"}
WAITING = rpc("tools/call", name="wait", arguments={})


class BooksPlugin(Plugin):
    """Tools of two kinds, one that waits, a prompt and a resource."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.going, self.go = anyio.Event(), anyio.Event()

    @tool(read_only=True)
    async def find_book(self, context: CallContext) -> str:
        """Find."""
        return f"found for {context.caller}"

    @tool(rate_limit="1/day")
    def drop_book(self) -> str:
        """Drop."""
        return "dropped"

    @tool
    async def wait(self) -> str:
        """Wait."""
        self.going.set()
        await self.go.wait()
        return "waited"

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="drop_all", description="Drop", function=lambda: "Drop all.")]

    @hookimpl
    def register_resources(self):
        return [Resource(uri="books://all", name="all", description="All", function=lambda: "all")]


class Reply(BaseModel):
    value: bool


class LendingPlugin(Plugin):
    @tool
    async def lend(self, context: CallContext) -> str:
        """Ask."""
        answer = await context.ask("Sure?", Reply)
        return f"{answer and answer.value}"


def auth() -> dict[str, Any]:
    scopes = {"reader": ["find_*"]}
    return auth_of(scopes, ann=(ANN, "reader"), bob=BOB, carol=(CAROL,))


@pytest.fixture
def make_books(make_host: MakeHost) -> MakeHost:
    def make(**server: Any) -> Host:
        return make_host({"books": BooksPlugin}, server={"port": 0, **server})

    return make


@pytest.fixture
async def url(make_books: MakeHost) -> AsyncGenerator[str]:
    async with served_over_http(make_books()) as found:
        yield found


@pytest.fixture
async def guarded(make_books: MakeHost) -> AsyncGenerator[str]:
    async with served_over_http(make_books(auth=auth())) as found:
        yield found


async def names_for(url: str, token: str, mode: str = "auto") -> list[str]:
    async with http_client(url, token, mode=mode) as client:
        return await names_of(client)


@pytest.mark.parametrize("server", [{}, {"stateless": True}, {"json_response": True}], ids=str)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_of_both_generations_are_served(
    make_books: MakeHost, server: dict[str, Any], mode: str
):
    async with client_of(make_books(**server), mode=mode) as client:
        assert await names_of(client) == ["find_book", "drop_book", "wait"]
        answer = await client.call_tool("find_book", {})
        assert answer.content[0].text == "found for anonymous"
        assert (await client.read_resource("books://all")).contents[0].text == "all"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_token_lists_and_calls_only_the_tools_of_its_scopes(guarded: str, mode: str):
    assert await names_for(guarded, BOB, mode) == ["find_book", "drop_book", "wait"]
    async with http_client(guarded, ANN, mode=mode) as client:
        assert await names_of(client) == ["find_book"]
        assert (await client.list_prompts()).prompts == []
        assert (await client.list_resources()).resources == []
        assert (await client.call_tool("find_book", {})).content[0].text == "found for ann"
        for refused in (
            partial(client.call_tool, "drop_book", {}),
            partial(client.get_prompt, "drop_all"),
            partial(client.read_resource, "books://all"),
        ):
            with pytest.raises(MCPError, match=r"Unknown|not found|no resource"):
                await refused()
    assert await names_for(guarded, CAROL, mode) == [], "it has no scope"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_token_finds_and_calls_only_the_tools_of_its_scopes(make_host: MakeHost, mode: str):
    tools = {"discovery": "search", "search_writing": True}
    host = make_host({"books": BooksPlugin}, tools=tools, server={"port": 0, "auth": auth()})
    async with served_over_http(host) as url, http_client(url, ANN, mode=mode) as client:
        assert await names_of(client) == ["search_tools", "call_tool"]
        found = await client.call_tool("search_tools", {"query": "drop a book"})
        assert [tool["name"] for tool in found.structured_content["tools"]] == ["find_book"]
        answer = await client.call_tool("call_tool", {"name": "find_book"})
        assert answer.content[0].text == "found for ann"
        refused = await client.call_tool("call_tool", {"name": "drop_book"})
        assert "Unknown tool" in refused.content[0].text


async def test_requests_without_a_valid_token_are_refused(guarded: str):
    tokens = ("smcp_wrong", token_hash(BOB), BOB[:-1], b"\xff")
    wrong: list[dict[str, Any]] = [{}, {"authorization": f"Basic {BOB}"}]
    wrong += [bearer(each) for each in tokens[:-1]] + [{"authorization": b"Bearer " + tokens[-1]}]
    async with patient_client(base_url=guarded, headers=ACCEPT) as client:
        for headers, path in product(wrong, ("/mcp", "/health", "/health/ready", "/else")):
            refused = await client.post(path, json=INITIALIZE, headers=headers)
            assert refused.status_code == 401, (headers, path)
            assert refused.headers["www-authenticate"].startswith("Bearer ")
        assert (await client.get("/health/live")).json() == {"status": "alive"}


async def test_a_session_belongs_to_the_token_that_opened_it(guarded: str):
    async with patient_client(base_url=guarded, headers=ACCEPT) as client:
        session = await open_session(client, BOB)
        stolen = await client.post("/mcp", json=rpc("tools/list"), headers=session | bearer(ANN))
        assert stolen.status_code == 404


async def test_the_refusal_of_an_incomplete_request_names_the_missing_part(guarded: str):
    async with patient_client(base_url=guarded, headers=ACCEPT | bearer(BOB)) as client:
        refused = await client.post("/mcp", json=rpc("tools/list"))
        assert "Missing session ID" in refused.json()["error"]["message"]
        params = {key: INITIALIZE["params"][key] for key in ("capabilities", "clientInfo")}
        incomplete = await client.post("/mcp", json=INITIALIZE | {"params": params})
        assert "initialize needs protocolVersion" in incomplete.text


@pytest.mark.parametrize("server", [{}, {"stateless": True}, {"json_response": True}], ids=str)
async def test_a_request_whose_body_alone_names_the_version_is_refused(
    make_books: MakeHost, server: dict[str, Any]
):
    message = rpc("tools/list", _meta=MODERN)
    escaped = json.dumps(message).replace("/", "\\/").encode()
    async with requests_to(make_books(**server), headers=ACCEPT) as client:
        for body in (json.dumps(message).encode(), escaped):
            refused = await client.post(
                "/mcp", content=body, headers={"content-type": "application/json"}
            )
            error = refused.json()
            assert (refused.status_code, error["error"]["code"]) == (400, -32020)
            assert error["id"] == 2
        named = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
        assert (await client.post("/mcp", json=message, headers=named)).status_code == 200
        opened = await client.post("/mcp", json=INITIALIZE)
        assert opened.status_code == 200, "the version of a handshake is in its params"


@pytest.mark.parametrize(
    ("body", "headers", "status", "error_id"),
    [
        (json.dumps(rpc("tools/list")), {}, 400, 2),
        (json.dumps(rpc("tools/list")), {"mcp-session-id": "gone"}, 404, 2),
        (json.dumps(rpc("tools/list") | {"id": "a"}), {"accept": "text/html"}, 406, "a"),
        (json.dumps(rpc("tools/list") | {"id": True}), {}, 400, None),
        (json.dumps([rpc("tools/list")]), {}, 400, None),
        ("{", {}, 400, None),
        ("{", {"mcp-protocol-version": "2026-07-28"}, 400, None),
        (json.dumps([rpc("tools/list")]), {"mcp-protocol-version": "2026-07-28"}, 400, None),
        (json.dumps(rpc("no/such") | {"params": {"_meta": MODERN}}), MODERN_HEADERS, 404, 2),
        (json.dumps(rpc("tools/list", cursor=[[0] * 30_000])), {}, 413, None),
    ],
)
async def test_an_error_has_the_id_of_its_request_and_none_if_the_id_is_unknown(
    url: str, body: str, headers: dict[str, str], status: int, error_id: object
):
    sent = ACCEPT | {"content-type": "application/json"} | headers
    async with patient_client(base_url=url) as client:
        refused = await client.post("/mcp", content=body, headers=sent)
    assert refused.status_code == status
    assert int(refused.headers["content-length"]) == len(refused.content)
    error = refused.json()
    assert error["error"]["code"]
    assert error.get("id", "none") == ("none" if error_id is None else error_id)


async def test_pages_that_are_not_configured_do_not_exist(url: str):
    async with patient_client(base_url=url) as client:
        for path in ("/tools", "/openapi.json", "/docs", "/metrics", "/admin", "/admin/tools"):
            assert (await client.get(path)).status_code == 404


async def test_limits_of_rate_count_for_each_token(make_books: MakeHost):
    other = auth()
    other["tokens"]["ann"]["scopes"] = ["*"]
    async with served_over_http(make_books(auth=other)) as url:
        for token in (ANN, BOB):
            async with http_client(url, token) as client:
                first, second = [await client.call_tool("drop_book", {}) for _ in range(2)]
                assert not first.is_error
                assert second.is_error


HOSTS = {
    200: ["localhost:1", "[::1]:8000", "LOCALHOST"],
    421: [
        *(f"localhost{mark}.evil.example" for mark in "#?/@\\ ,;%\t."),
        *("evil.example", "[bad", "evil@localhost", "localhost:", "localhost:x", "localhost:1:2"),
        "[::1].evil.example",
    ],
}
ORIGINS = {
    200: ["http://localhost:1", "HTTP://Localhost:1"],
    403: [
        *("https://evil.example", "null", "https://localhost:1", "ftp://localhost:1"),
        *("localhost:1", "http://localhost:2", "http://localhost:1/"),
    ],
}


async def test_requests_name_a_host_and_an_origin_that_are_served(url: str):
    async with patient_client(base_url=url, headers=ACCEPT) as client:
        cases = [({"host": name}, status) for status, names in HOSTS.items() for name in names]
        for status, names in ORIGINS.items():
            cases += [({"host": "localhost:1", "origin": name}, status) for name in names]
        for headers, status in cases:
            answer = await client.post("/mcp", json=INITIALIZE, headers=headers)
            assert answer.status_code == status, headers


async def test_a_page_of_the_service_itself_has_its_scheme(make_books: MakeHost):
    host = make_books(auth=auth(), allowed_hosts=["mcp.example.org"], trusted_proxies=["127.0.0.1"])
    by_https = {"x-forwarded-proto": "https"}
    async with requests_to(host, headers=bearer(BOB) | {"host": "mcp.example.org"}) as http:
        for forwarded, scheme, status in (
            ({}, "https", 200),
            ({}, "http", 200),
            ({}, "ftp", 403),
            (by_https, "https", 200),
            (by_https, "http", 403),
        ):
            sent = {"origin": f"{scheme}://mcp.example.org", **forwarded}
            assert (await http.get("/health", headers=sent)).status_code == status, sent


async def test_any_host_does_not_mean_a_host_with_a_path(make_books: MakeHost):
    async with requests_to(make_books(allowed_hosts=["*"])) as http:
        for name, status in (("any.example", 200), ("any.example/x", 421), ("a#b", 421)):
            assert (await http.get("/health", headers={"host": name})).status_code == status


@pytest.mark.parametrize(
    ("trusted", "client"), [([], "127.0.0.1"), (["127.0.0.0/8"], "203.0.113.7")], ids=str
)
async def test_only_a_trusted_proxy_says_from_where_a_request_comes(
    make_books: MakeHost, caplog: pytest.LogCaptureFixture, trusted: list[str], client: str
):
    caplog.set_level("INFO", "standards_mcp")
    async with requests_to(make_books(auth=auth(), trusted_proxies=trusted)) as http:
        await http.get("/health", headers=bearer("wrong") | {"x-forwarded-for": "203.0.113.7"})
    assert refused_clients(caplog) == [client]


FORWARDED = ("x-forwarded-for", "x-forwarded-host", "forwarded", "via")


async def test_a_service_for_its_own_machine_takes_nothing_from_a_proxy(
    make_books: MakeHost, caplog: pytest.LogCaptureFixture
):
    async def statuses(host: Host, headers: dict[str, str]) -> set[int]:
        async with requests_to(host) as http:
            pages = [
                await http.get("/health", headers=headers | {name: "for=me"}) for name in FORWARDED
            ]
            live = await http.get("/health/live", headers=headers | {"via": "1.1 proxy"})
        assert live.status_code == 200
        return {each.status_code for each in pages}

    assert await statuses(make_books(), {}) == {421}
    assert caplog.text.count("requests of a proxy are refused") == 1
    assert await statuses(make_books(allowed_hosts=["127.0.0.1"]), {}) == {200}
    assert await statuses(make_books(auth=auth()), bearer(ANN)) == {200}


async def test_pages_of_an_allowed_origin_may_use_the_service(make_books: MakeHost):
    chat = "https://chat.example.org"
    host = make_books(allowed_origins=[chat], allowed_hosts=["*.example.org", "127.0.0.1"])
    async with requests_to(host) as client:
        asked = {"origin": chat, "access-control-request-method": "POST"}
        answer = await client.options("/mcp", headers=asked)
        assert answer.headers["access-control-allow-origin"] == chat
        named = {"origin": chat, "host": "mcp.example.org", **ACCEPT}
        assert (await client.post("/mcp", json=INITIALIZE, headers=named)).status_code == 200


class ScalePlugin(Plugin):
    @tool
    def weigh(self, grams: float) -> str:
        """Weigh."""
        return f"{grams}"


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity"])
async def test_numbers_that_json_does_not_have_reach_no_tool(make_host: MakeHost, number: str):
    host = make_host({"scale": ScalePlugin}, server={"port": 0, "stateless": True})
    modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "weigh"}
    async with requests_to(host) as client:
        for headers, meta in (({}, {}), (modern, {"_meta": MODERN})):
            call = rpc("tools/call", name="weigh", arguments={"grams": "@"}, **meta)
            body = json.dumps(call).replace('"@"', number)
            sent = ACCEPT | headers | {"content-type": "application/json"}
            answer = await client.post("/mcp", content=body, headers=sent)
            assert "invalid_input" in answer.text or answer.status_code == 400, answer.text


async def test_bodies_and_sessions_have_limits(make_books: MakeHost):
    host = make_books(max_request_bytes=1000, max_sessions=1)
    async with requests_to(host, headers=ACCEPT) as client:
        large = INITIALIZE | {"id": "x" * 1000}
        assert (await client.post("/mcp", json=large)).status_code == 413
        assert (await client.post("/mcp", json=INITIALIZE)).status_code == 200
        assert (await client.post("/mcp", json=INITIALIZE)).status_code == 503


async def test_a_token_has_a_share_of_the_sessions_also_when_it_opens_them_at_once(
    make_books: MakeHost,
):
    host = make_books(auth=auth(), max_sessions=10, max_sessions_per_client=2)
    answers = list[httpx2.Response]()

    async def open_one(token: str = ANN) -> int:
        answer = await client.post("/mcp", json=INITIALIZE, headers=bearer(token))
        answers.append(answer)
        return answer.status_code

    async with requests_to(host, headers=ACCEPT) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(open_one)
        answers.sort(key=lambda answer: answer.status_code)
        assert [answer.status_code for answer in answers] == [200] * 2 + [429] * 6
        assert "this token has 2 sessions open" in answers[-1].json()["error"]["message"]
        assert await open_one(BOB) == 200
        ended = {"mcp-session-id": answers[0].headers["mcp-session-id"]} | bearer(ANN)
        assert (await client.delete("/mcp", headers=ended)).status_code == 200
        assert await open_one() == 200


async def test_a_token_has_a_share_of_the_streams_of_changes_only(make_books: MakeHost):
    host, heard, going = make_books(auth=auth(), max_sessions=5), list[str](), anyio.Event()
    async with anyio.create_task_group() as tasks, served_over_http(host) as url:
        tasks.start_soon(hear, url, BOB, heard, going)
        await going.wait()
        refused = list[str]()
        await hear(url, BOB, refused, anyio.Event())
        assert "this token has 1 streams of changes open" in refused[0]
        tasks.start_soon(hear, url, ANN, heard, others := anyio.Event())
        await others.wait()


async def test_the_sessions_of_a_token_end_when_it_is_revoked(make_books: MakeHost):
    host = make_books(auth=auth())
    async with requests_to(host) as client:
        anns, bobs = [await open_session(client, token) for token in (ANN, BOB)]
        async with client.stream("GET", "/mcp", headers=bobs) as stream:
            replace_tokens(host, without="bob")
            assert [line async for line in stream.aiter_lines()] == []
        replace_tokens(host)
        for session, status in ((bobs, 404), (anns, 200)):
            pinged = await client.post("/mcp", json=rpc("ping"), headers=session)
            assert pinged.status_code == status


def replace_tokens(host: Host, without: str = "") -> None:
    """Reload the tokens as they were at first, but one."""
    held = AuthSettings.model_validate(auth())
    tokens = {name: each for name, each in held.tokens.items() if name != without}
    changed = {"auth": held.model_copy(update={"tokens": tokens})}
    server = host.settings.server.model_copy(update=changed)
    host.take_over(host.loaded, host.settings.model_copy(update={"server": server}))


async def test_an_idle_session_is_closed(make_books: MakeHost):
    async with requests_to(make_books(session_idle=0.05), headers=ACCEPT) as client:
        session, tools = await open_session(client), rpc("tools/list")
        await anyio.wait_all_tasks_blocked()  # from now on it is idle
        await anyio.sleep(0.5)
        assert (await client.post("/mcp", json=tools, headers=session)).status_code == 404


@pytest.mark.parametrize(("drain", "status"), [(WAIT, 200), (0.1, 503)], ids=["soon", "late"])
async def test_the_end_waits_for_a_call_in_flight_as_long_as_the_drain(
    make_books: MakeHost, drain: float, status: int
):
    host = make_books(stateless=True, json_response=True, drain=drain)
    plugin: Any = host.manager.records["books"].plugin
    answers = list[httpx2.Response]()

    async def call(url: str) -> None:
        async with patient_client(base_url=url, headers=ACCEPT) as client:
            answers.append(await client.post("/mcp", json=WAITING))

    async def go_soon() -> None:
        await anyio.sleep(0.2)
        plugin.go.set()

    async with anyio.create_task_group() as tasks, served_over_http(host) as url:
        tasks.start_soon(call, url)
        await plugin.going.wait()
        if status == 200:
            tasks.start_soon(go_soon)
    assert [answer.status_code for answer in answers] == [status]
    assert ("waited" in answers[0].text) == (status == 200)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "mcp.example.org"])  # noqa: S104
def test_a_public_address_needs_tokens_or_allowed_hosts(host: str):
    with pytest.raises(ConfigError, match="auth token new NAME"):
        check_exposure(HttpSettings(host=host))
    for here in ("127.0.0.1", "127.0.0.2", "::1", "LOCALHOST"):
        check_exposure(HttpSettings(host=here))
    check_exposure(HttpSettings(host=host, allowed_hosts=("mcp.example.org",)))
    check_exposure(HttpSettings(host=host, auth=AuthSettings(required=True)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"allowed_hosts": ["mcp.example.org:8443"]},
        {"allowed_hosts": ["https://mcp.example.org"]},
        {"allowed_origins": ["*"]},
        {"allowed_origins": ["https://chat.example.org/"]},
        {"state_key": "k" * 31},
        {"trusted_proxies": ["proxy.example.org"]},
        {"trusted_proxies": ["*"]},
    ],
    ids=str,
)
def test_hosts_origins_and_keys_that_are_of_no_use_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValidationError):
        HttpSettings.model_validate(wrong)


def test_tokens_for_the_pages_of_operators_need_no_scopes_of_ones_own():
    file = Path("standards-mcp.toml")
    file.write_text("", encoding="utf-8")
    for name, scope in (("prometheus", "metrics"), ("ops", "admin")):
        made = CliRunner().invoke(cli, ["auth", "token", "new", name, "--scope", scope])
        assert made.exit_code == 0, made.output
    tokens = Sources(file).load().settings.server.auth.tokens
    assert [each.scopes for each in tokens.values()] == [("metrics",), ("admin",)]


@pytest.mark.parametrize(
    ("command", "variable", "value", "told"),
    [
        ("new lib --scope metrics --replace", "TOKENS__LIB__SHA256", HASH, "not be in force"),
        ("new lib --scope metrics", "REQUIRED", "false", "overrides the file"),
        ("revoke lib", "TOKENS__LIB__SHA256", HASH, "overrides the file"),
    ],
    ids=["made", "needed", "revoked"],
)
def test_a_change_of_a_token_that_would_not_count_is_refused(
    monkeypatch: pytest.MonkeyPatch, command: str, variable: str, value: str, told: str
):
    file = Path("standards-mcp.toml")
    file.write_text("", encoding="utf-8")
    monkeypatch.setenv(f"STANDARDS_MCP_SERVER__AUTH__{variable}", value)
    refused = CliRunner().invoke(cli, ["auth", "token", *command.split()])
    assert refused.exit_code == 1, refused.output
    assert told in refused.output
    assert "a variable or --set overrides the file" in refused.output
    assert file.read_text("utf-8") == ""


def test_revoking_the_last_token_leaves_tokens_required():
    file = Path("standards-mcp.toml")
    file.write_text(f'[server.auth.tokens.lib]\nsha256 = "{HASH}"\n', encoding="utf-8")
    assert CliRunner().invoke(cli, ["auth", "token", "revoke", "lib"]).exit_code == 0
    assert tomllib.loads(file.read_text("utf-8"))["server"]["auth"] == {"required": True}


def test_an_address_that_is_taken_is_named():
    with listen(HttpSettings(port=0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(StandardsMcpError, match=rf"cannot listen at 127\.0\.0\.1:{port}"):
            listen(HttpSettings(port=port))


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ({"tokens": {"ann": {"sha256": HASH, "scopes": ["gone"]}}}, "has the unknown scope 'gone'"),
        ({"tokens": {"ann": {"sha256": ANN}}}, "`auth token new` writes"),
        ({"tokens": {"a\nb": {"sha256": HASH}}}, "a name of up to 64 letters"),
        ({"tokens": {"local": {"sha256": HASH}}}, "not 'local' or 'anonymous'"),
        ({"jwt": {"issuer": "https://login.example.org"}}, r"jwt.audience\s+Field required"),
        ({"oidc": OIDC | {"groups": {}}}, "at least 1 item"),
        ({"oidc": OIDC | {"groups": {"staff": ["gone"]}}}, "the group 'staff' has the unknown"),
        ({"oidc": OIDC | {"public_url": "http://mcp.example.org"}}, "use https"),
        ({"oidc": OIDC | {"issuer": "http://login.example.org"}}, "use https"),
        ({"oidc": OIDC | {"scopes": ["a b"]}}, "a scope without spaces"),
        ({"scopes": {"reader": {"profile": "gone"}}}, r"no table \[profiles.gone\]"),
    ],
    ids=[
        *("scope", "token", "name", "taken", "jwt", "no group", "group", "public", "issuer"),
        *("scopes", "profile"),
    ],
)
def test_mistakes_in_the_authorization_settings_are_refused(auth: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate({"server": {"auth": auth}})


async def hear(url: str, token: str, heard: list[str], going: anyio.Event) -> None:
    """Listen to changes of a resource in the way of 2026-07-28, until the stream ends."""
    method, uris = "subscriptions/listen", {"resourceSubscriptions": ["books://all"]}
    message = rpc(method, notifications=uris, _meta=MODERN)
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, **ACCEPT}
    who = bearer(token) if token else {}
    async with (
        patient_client(base_url=url) as client,
        client.stream("POST", "/mcp", json=message, headers=headers | who) as stream,
    ):
        async for line in stream.aiter_lines():
            heard.append(line)
            going.set()


async def test_listeners_end_with_the_service_and_do_not_hold_it_up(make_books: MakeHost):
    host, heard, going = make_books(auth=auth(), drain=3600), list[str](), anyio.Event()
    received = list[str]()

    async def listen_in_a_session(url: str, opened: anyio.Event) -> None:
        async with patient_client(base_url=url) as client:
            session = await open_session(client, BOB)
            async with client.stream("GET", "/mcp", headers=session) as stream:
                opened.set()
                received.extend([line async for line in stream.aiter_lines()])

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks, served_over_http(host) as url:
            tasks.start_soon(hear, url, BOB, heard, going)
            tasks.start_soon(listen_in_a_session, url, opened := anyio.Event())
            await going.wait()
            await opened.wait()
    assert any("acknowledged" in line for line in heard)
    assert received == []


async def test_a_revoked_token_ends_its_streams_and_no_others(make_books: MakeHost):
    host = make_books(auth=auth() | {"required": False})
    heard: dict[str, list[str]] = {token: [] for token in (ANN, BOB, "")}
    ended = list[str]()

    async def hear_to_the_end(token: str, going: anyio.Event) -> None:
        await hear(url, token, heard[token], going)
        ended.append(token)

    async with anyio.create_task_group() as tasks, served_over_http(host) as url:
        for token in heard:
            tasks.start_soon(hear_to_the_end, token, going := anyio.Event())
            await going.wait()
        host.manager.changes.tell_updated("books://all")
        await until(lambda: any("resources/updated" in line for line in heard[BOB]))
        replace_tokens(host, without="bob")
        await until(lambda: sorted(ended) == sorted([BOB, ""]))
    assert ended[-1] == ANN, "hers ends with the service"


async def test_the_state_of_a_question_is_valid_for_its_token_only(make_host: MakeHost):
    server = {"port": 0, "json_response": True, "auth": auth_of(ann=ANN, bob=BOB)}
    async with served_over_http(make_host({"lending": LendingPlugin}, server=server)) as url:
        asked = await call_anew(url, "lend", bearer(ANN))
        (key,) = asked["inputRequests"]
        reply = {key: {"action": "accept", "content": {"value": True}}}
        sent = {"requestState": asked["requestState"], "inputResponses": reply}
        with pytest.raises(MCPError, match="requestState"):
            await call_anew(url, "lend", bearer(BOB), **sent)
        answer = await call_anew(url, "lend", bearer(ANN), **sent)
    assert answer["content"][0]["text"] == "True"


async def test_a_wrong_token_is_refused_even_if_tokens_are_optional(make_books: MakeHost):
    async with requests_to(make_books(auth=auth() | {"required": False})) as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/health", headers=bearer("smcp_wrong"))).status_code == 401


def test_globs_of_scopes_add_up_and_profiles_narrow():
    scopes = {"a": ("find_*",), "b": ("get_*",), "c": {"profile": "readers"}}
    settings = AuthSettings.model_validate({"scopes": scopes})
    both = access_of(["b", "a", "other"], settings)
    assert (both.names, both.profiles) == (("find_*", "get_*"), ())
    assert access_of(["c"], settings).profiles == ("readers",)
    assert access_of([], settings).names == ()
    assert access_of(["*", "a"], settings).names == ("*",)


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.usefixtures("starter_catalog")
@pytest.mark.skipif(sys.platform == "win32", reason="a process is ended there without a signal")
async def test_a_revoked_token_is_refused_and_sigterm_ends_the_service():
    run = partial(CliRunner().invoke, cli)
    Path("standards-mcp.toml").write_text("", encoding="utf-8")
    made = run(["auth", "token", "new", "ann"])
    token = made.stdout.strip()
    assert token not in Path("standards-mcp.toml").read_text("utf-8")
    peer = Peer("serve", "--transport", "http", "--port", "0", "--watch")
    try:
        url = await anyio.to_thread.run_sync(told_url, peer)
        assert "find_relevant_standards" in await names_for(url, token)
        assert run(["auth", "token", "revoke", "ann"]).exit_code == 0
        await anyio.to_thread.run_sync(peer.wait_for_log, "the configuration is reloaded")
        async with patient_client(base_url=url) as client:
            refused = await client.get("/health", headers=bearer(token))
        assert refused.status_code == 401, "also after the last token"
        peer.process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(peer.process.wait, WAIT) == 0
        assert token not in peer.log()
    finally:
        peer.kill()


@pytest.mark.parametrize("option", [["--port", "1"], ["--insecure"], ["--stateless"]], ids=str)
def test_options_of_the_service_need_it(option: list[str]):
    refused = CliRunner().invoke(cli, ["serve", *option])
    assert refused.exit_code == 2
    assert "need --transport http" in refused.output


@pytest.mark.slow
def test_the_service_does_not_start_beyond_this_machine_by_accident():
    command = [*COMMAND, "serve", "--transport", "http", "--host", "0.0.0.0"]  # noqa: S104
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert "`standards-mcp auth token new NAME`" in refused.stderr


@pytest.mark.slow
@given(body=st.binary(max_size=300) | st.text(max_size=300).map(str.encode), modern=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_body_gets_an_answer_and_the_service_lives_on(
    url: str, body: bytes, *, modern: bool
):
    version = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"} if modern else {}
    sent = {"content-type": "application/json", **ACCEPT, **version}
    async with patient_client(base_url=url) as client:
        refused = await client.post("/mcp", content=body, headers=sent)
        assert refused.status_code in range(400, 500)
        assert (await client.get("/health/live")).status_code == 200
