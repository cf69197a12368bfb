"""Each user signs in with a browser: authorization code, PKCE and refresh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_IMODE
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
import pytest
from click.testing import CliRunner
from support.hosts import MakeHost, message_of, started
from support.http import auth_of as tokens_of
from support.http import free_port, http_client, patient_client, served_over_http
from support.waiting import until

from standards_mcp.cli import cli
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp_signin import accounts
from standards_mcp_signin.login import begin, finish, sign_out
from standards_mcp_signin.sign_in import OAuth

pytestmark = pytest.mark.anyio
AuthOf = Callable[..., dict[str, Any]]
REDIRECT = "http://127.0.0.1:9/signed-in"


def sign_in_of(host: Host, name: str = "wiki") -> OAuth:
    plugin: Any = host.manager.records[name].plugin
    return plugin.sign_in


def browse(url: str) -> dict[str, str]:
    """Return the query with which the issuer sends a browser back."""
    answer = httpx2.get(url)
    assert answer.status_code == 302, answer.text
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in query.items()}


async def sign_in(host: Host, owner: str = "local", **changes: str) -> OAuth:
    auth = sign_in_of(host)
    url, _ = await begin(auth, owner, REDIRECT)
    answer = await anyio.to_thread.run_sync(browse, url)
    await finish(auth, owner, REDIRECT, answer | changes)
    return auth


@pytest.fixture
def make_signed(make_host: MakeHost, auth_of: AuthOf) -> Callable[..., Host]:
    def make(url: str, **keys: Any) -> Host:
        auth = auth_of("authorization_code", scopes=["read"], **keys)
        return make_host(servers={"wiki": {"url": url, "auth": auth}})

    return make


async def test_a_user_signs_in_calls_and_signs_out(
    make_signed: Callable[..., Host], issuer: Any, upstream: Any
):
    async with upstream() as url:
        host = make_signed(url)
        async with started(host):
            reason = host.manager.records["wiki"].reason
            assert (
                "Not signed in at server 'wiki': run `standards-mcp servers login wiki`" in reason
            )
        host = make_signed(url)
        auth = await sign_in(host)
        async with started(host):
            called = await host.call_tool("wiki_who", {})
            assert called.content[0]["text"] == f"{issuer.url}:ann"
            assert (await check_health(host.manager))["wiki"].message.endswith("; signed in")
            assert issuer.refresh_tokens
            await sign_out(auth, "local")
            assert auth.status() == "not signed in"
            assert not issuer.refresh_tokens, "they are revoked, too"
            assert "Not signed in" in message_of(await host.call_tool("wiki_who", {}))


async def test_an_expired_token_is_refreshed_with_rotation_also_after_a_restart(
    make_signed: Callable[..., Host], issuer: Any, upstream: Any
):
    issuer.lifetime = 20
    async with upstream() as url:
        await sign_in(make_signed(url))
        for _ in range(3):
            host = make_signed(url)
            async with started(host):
                assert not (await host.call_tool("wiki_who", {})).is_error
        refreshes = [form["refresh_token"] for form in issuer.requests[1:]]
        assert len(refreshes) == len(set(refreshes)) >= 3
        assert {form["grant_type"] for form in issuer.requests[1:]} == {"refresh_token"}


async def test_a_sign_in_that_the_issuer_has_ended_says_what_to_do(
    make_signed: Callable[..., Host], issuer: Any, upstream: Any
):
    issuer.lifetime = 20
    async with upstream() as url:
        host = make_signed(url)
        await sign_in(host)
        async with started(host):
            assert not (await host.call_tool("wiki_who", {})).is_error
            issuer.refresh_tokens.clear()
            message = message_of(await host.call_tool("wiki_who", {}))
            assert "is over: the authorization server has ended it. " in message
            assert "standards-mcp servers login wiki" in message
            assert "Not signed in" in message_of(await host.call_tool("wiki_who", {}))


async def test_an_issuer_that_is_down_ends_no_sign_in(
    make_signed: Callable[..., Host], issuer: Any, upstream: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(accounts, "_MAX_BACKOFF", 0.0)
    issuer.lifetime = 0
    async with upstream() as url:
        host = make_signed(url)
        auth = await sign_in(host)
        issuer.status = 502
        with pytest.raises(accounts.ApiError, match="answers with HTTP 502"):
            await auth.operator.prepare()
        issuer.status = 0
        await auth.operator.prepare()
        assert auth.status() == "signed in"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://evil.example.org"}, "of another issuer, 'https://evil.example.org'"),
        ({"iss": ""}, "of another issuer, ''"),
        ({"state": "another"}, "is not known, or took too long"),
        ({"code": "another"}, "invalid_grant"),
        (
            {"error": "access_denied", "error_description": "no\x1b[31m"},
            r"access_denied: no\\u001b",
        ),
    ],
)
async def test_an_answer_that_is_not_of_this_sign_in_is_refused(
    make_signed: Callable[..., Host], changes: dict[str, str], reason: str
):
    host = make_signed("https://wiki.example.org/mcp")
    with pytest.raises(accounts.ApiError, match=reason):
        await sign_in(host, **changes)
    assert sign_in_of(host).status() == "not signed in"


async def test_an_answer_for_another_user_or_after_the_time_is_refused(
    make_signed: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
):
    auth = sign_in_of(make_signed("https://wiki.example.org/mcp"))
    url, _ = await begin(auth, "ann", REDIRECT)
    answer = browse(url)
    with pytest.raises(accounts.ApiError, match="is not known"):
        await finish(auth, "bob", REDIRECT, answer)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 700)
    with pytest.raises(accounts.ApiError, match="took too long"):
        await finish(auth, "ann", REDIRECT, answer)


async def test_the_code_of_one_issuer_is_not_sent_to_another(
    make_signed: Callable[..., Host], issuer: Any
):
    auth = sign_in_of(make_signed(f"{issuer.url}/mcp", issuer=None))  # the server names it
    answer = browse((await begin(auth, "local", REDIRECT))[0])
    auth._endpoints[1].issuer = "https://evil.example.org"
    with pytest.raises(accounts.ApiError, match="of another issuer"):
        await finish(auth, "local", REDIRECT, answer)
    assert issuer.requests == []


async def test_a_server_may_name_its_issuer_but_only_for_itself(
    make_signed: Callable[..., Host], upstream: Any
):
    async with upstream() as url:
        auth = sign_in_of(make_signed(url, issuer=None, client_id="app"))
        with pytest.raises(accounts.ApiError, match="is about another resource"):
            await begin(auth, "local", REDIRECT)


async def test_a_refresh_is_stored_although_its_call_was_cancelled(
    make_signed: Callable[..., Host], issuer: Any
):
    issuer.lifetime, issuer.delay = 0, 0.3
    auth = await sign_in(make_signed("https://wiki.example.org/mcp"))
    first = auth.store.read("local")
    assert first
    with anyio.move_on_after(0.1) as scope:
        await auth.operator.prepare()
    assert scope.cancelled_caught

    def is_renewed() -> bool:
        token = auth.store.read("local")
        return token is not None and token.refresh != first.refresh

    await until(is_renewed)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"registration_endpoint": ""}, "registers no clients; set client_id"),
        ({"authorization_endpoint": ""}, "is not an https address"),
        ({"registration_endpoint": "/token"}, "is not an https address"),
    ],
)
async def test_an_issuer_at_which_users_cannot_sign_in_is_told(
    make_signed: Callable[..., Host], issuer: Any, metadata: dict[str, str], reason: str
):
    issuer.metadata = metadata
    auth = sign_in_of(make_signed("https://wiki.example.org/mcp"))
    with pytest.raises(accounts.ApiError, match=reason):
        await begin(auth, "local", REDIRECT)


async def test_a_client_with_a_secret_signs_users_in_and_refreshes(
    make_signed: Callable[..., Host], issuer: Any
):
    issuer.lifetime = 0
    keys = {"client_id": "host", "client_secret": "${CLIENT_SECRET}"}
    auth = await sign_in(make_signed("https://wiki.example.org/mcp", **keys))
    await auth.operator.prepare()
    assert [form["grant_type"] for form in issuer.requests] == [
        "authorization_code",
        "refresh_token",
    ]
    await sign_out(auth, "local")
    assert not issuer.refresh_tokens


async def test_a_token_that_cannot_be_refreshed_ends_with_its_time(
    make_signed: Callable[..., Host], issuer: Any
):
    issuer.changes, issuer.lifetime = {"refresh_token": None}, 0
    auth = await sign_in(make_signed("https://wiki.example.org/mcp"))
    assert auth.status() == "signed in, but expired"
    with pytest.raises(accounts.NotSignedInError, match="is over: it has expired"):
        await auth.operator.prepare()
    assert auth.status() == "not signed in"


async def test_a_damaged_sign_in_can_be_deleted(make_signed: Callable[..., Host]):
    auth = await sign_in(make_signed("https://wiki.example.org/mcp"))
    auth.store.path("local").write_bytes(b"\xff")
    await sign_out(auth, "local")
    assert auth.status() == "not signed in"


async def test_an_issuer_without_pkce_is_refused(make_signed: Callable[..., Host], issuer: Any):
    issuer.metadata = {"code_challenge_methods_supported": ["plain"]}
    auth = sign_in_of(make_signed("https://wiki.example.org/mcp"))
    with pytest.raises(accounts.ApiError, match="does not support PKCE"):
        await begin(auth, "local", REDIRECT)


async def test_tokens_are_encrypted_and_for_one_configuration(
    make_signed: Callable[..., Host], issuer: Any, tmp_path: Path
):
    url = "https://wiki.example.org/mcp"
    await sign_in(make_signed(url))
    folder = tmp_path / "state/plugins/wiki/sign-in"
    assert os.name == "nt" or S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert os.name == "nt" or S_IMODE(file.stat().st_mode) == 0o600
        assert not any(token.encode() in file.read_bytes() for token in issuer.given)
    assert sign_in_of(make_signed(url)).status() == "signed in"
    for other in ({"url": "https://other.example.org"}, {"client_id": "app"}):
        assert sign_in_of(make_signed(**({"url": url} | other))).status() == "not signed in"


@pytest.mark.parametrize("damage", ["changed", "swapped", "key", "empty"])
async def test_a_damaged_store_is_an_error_with_a_remedy(
    make_signed: Callable[..., Host], upstream: Any, damage: str
):
    async with upstream() as url:
        host = make_signed(url)
        auth = await sign_in(host)
        file = auth.store.path("local")
        if damage == "swapped":
            await sign_in(host, "bob")
            auth.store.path("bob").replace(file)
        elif damage == "key":
            (file.parent / "key").unlink()
        else:
            data = file.read_bytes()
            file.write_bytes(data[:50] + b"A" + data[51:] if damage == "changed" else b"")
        assert auth.status() == "the stored sign-in was changed, or has another key"
        async with started(host):
            assert "run `standards-mcp servers login wiki`" in host.manager.records["wiki"].reason
        await sign_in(host)
        assert auth.status() == "signed in"


async def test_the_key_may_come_from_a_variable(make_host: MakeHost, auth_of: AuthOf):
    server = {"url": "https://wiki.example.org", "auth": auth_of("authorization_code")}

    def host_with(key: str) -> Host:
        return make_host(servers={"wiki": server}, sign_in_key=key)

    auth = await sign_in(host_with("k" * 32))
    assert not (auth.store.path("local").parent / "key").exists()
    assert sign_in_of(host_with("k" * 32)).status() == "signed in"
    assert "another key" in sign_in_of(host_with("l" * 32)).status()


async def test_users_of_the_service_sign_in_on_its_page_each_with_an_own_account(
    make_host: MakeHost, auth_of: AuthOf, issuer: Any, upstream: Any
):
    port = free_port()
    public = f"http://127.0.0.1:{port}"
    auth = {"required": True, **tokens_of(ann="token of ann", bob="token of bob")}
    async with upstream() as url:
        wiki = {"url": url, "auth": auth_of("authorization_code", public_url=public)}
        host = make_host(servers={"wiki": wiki}, server={"port": port, "auth": auth})
        await sign_in(host)  # the operator, whose account lists the tools
        page = f"{public}/plugins/wiki/sign-in"
        async with (
            served_over_http(host),
            patient_client(auth=("", "token of ann")) as ann,
            patient_client(auth=("", "token of bob")) as bob,
        ):
            assert "ann: not signed in." in (await ann.get(page)).text
            begun = await ann.post(page)
            assert begun.status_code == 303
            issuer.user = "ann-at-the-issuer"
            back = (await bob.get(begun.headers["location"])).headers["location"]
            stranger = await bob.get(back)
            assert stranger.status_code == 400
            assert "is not known" in stranger.text, "a link of ann does not sign bob in"
            done = await ann.get(back)
            assert "ann: signed in." in done.text
            assert done.headers["referrer-policy"] == "same-origin"
            for mode in ("auto", "legacy"):
                async with http_client(public, "token of ann", mode=mode) as client:
                    called = await client.call_tool("wiki_who", {})
                    assert called.content[0].text == f"{issuer.url}:ann-at-the-issuer"
            async with http_client(public, "token of bob") as client:
                refused = await client.call_tool("wiki_who", {})
                assert f"open {page} in a browser" in refused.content[0].text
            issuer.metadata = {"code_challenge_methods_supported": []}
            sign_in_of(host)._endpoints = None
            failed = await bob.post(page)
            assert failed.status_code == 400
            assert "The sign-in failed: " in failed.text
            out = await ann.post(f"{public}/plugins/wiki/sign-out")
            assert "ann: not signed in." in out.text
            async with http_client(public, "token of ann") as client:
                assert "Not signed in" in (await client.call_tool("wiki_who", {})).content[0].text


async def test_users_who_cannot_be_told_apart_cannot_sign_in(
    make_host: MakeHost, auth_of: AuthOf, upstream: Any
):
    port = free_port()
    public = f"http://127.0.0.1:{port}"
    async with upstream() as url:
        wiki = {"url": url, "auth": auth_of("authorization_code", public_url=public)}
        host = make_host(servers={"wiki": wiki}, server={"port": port})
        await sign_in(host)
        async with served_over_http(host), patient_client() as client:
            assert (await client.post(f"{public}/plugins/wiki/sign-in")).status_code == 400
            async with http_client(public) as caller:
                refused = await caller.call_tool("wiki_who", {})
                assert "this caller has no name" in refused.content[0].text


REFRESH = """
import sys, anyio
from pathlib import Path
from standards_mcp.config.loading import load_settings
from standards_mcp.host import Host

host = Host(load_settings(Path(sys.argv[1])), installed=[])
host.load()
account = host.manager.records["wiki"].plugin.sign_in.operator

async def refresh():
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        await account.prepare()
        print("done", flush=True)

anyio.run(refresh)
"""


@pytest.fixture
def config(tmp_path: Path, issuer: Any) -> Path:
    file = tmp_path / "config.toml"
    configure(file, issuer.url, "https://wiki.example.org/mcp")
    return file


def configure(file: Path, issuer: str, url: str) -> None:
    file.write_text(f"""
        state_dir = "{(file.parent / "state").as_posix()}"
        [servers.wiki]
        url = "{url}"
        auth = {{ grant = "authorization_code", issuer = "{issuer}", scopes = ["read"] }}
    """)


def refreshing(config: Path, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REFRESH, str(config), str(times)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.processes
@pytest.mark.slow
async def test_two_processes_that_refresh_at_once_lose_no_token(
    make_signed: Callable[..., Host], issuer: Any, config: Path
):
    issuer.lifetime, issuer.delay = 0, 0.05
    await sign_in(make_signed("https://wiki.example.org/mcp"))
    processes = [refreshing(config, 10) for _ in range(2)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, _ = await anyio.to_thread.run_sync(process.communicate)
        assert process.returncode == 0
        assert out.count("done") == 10
    assert len(issuer.requests) == 21
    used = [form["refresh_token"] for form in issuer.requests[1:]]
    assert len(set(used)) == 20, "each is used once"


@pytest.mark.processes
@pytest.mark.slow
async def test_a_process_that_is_killed_leaves_a_file_that_can_be_read(
    make_signed: Callable[..., Host], issuer: Any, config: Path
):
    issuer.lifetime = 0
    auth = await sign_in(make_signed("https://wiki.example.org/mcp"))
    for count in range(5):
        process = refreshing(config, 1000)
        process.stdin.write("\n")
        process.stdin.flush()
        for _ in range(count + 1):
            assert process.stdout.readline() == "done\n"
        process.kill()
        process.communicate()
        assert auth.status() == "signed in", "not the half of a file"
        await sign_in(make_signed("https://wiki.example.org/mcp"))


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.measured
async def test_the_command_signs_in_lists_and_signs_out(issuer: Any, config: Path, upstream: Any):
    async with upstream() as url:
        configure(config, issuer.url, url)
        await sign_in_list_and_sign_out(issuer, config)


async def sign_in_list_and_sign_out(issuer: Any, config: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "standards_mcp", "--config", str(config)]
        ran = subprocess.run(
            [*command, *arguments], check=False, capture_output=True, text=True, timeout=90
        )
        return ran.stdout + ran.stderr

    def login() -> str:
        command = [sys.executable, "-m", "standards_mcp", "--config", str(config), "servers"]
        arguments = ["login", "wiki", "--no-browser"]
        with subprocess.Popen(
            [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert "Open this address" in process.stderr.readline()
            back = httpx2.get(process.stderr.readline().strip()).headers["location"]
            base = back.partition("?")[0]
            assert httpx2.get(base.replace("signed-in", "")).status_code == 404
            assert httpx2.get(f"{base}?state=of-a-stranger&code=1").status_code == 200
            assert "close this page" in httpx2.get(back).text
            return process.communicate(timeout=90)[0]

    async def ran(*arguments: str) -> str:
        return await anyio.to_thread.run_sync(run, *arguments)

    assert "wiki  not signed in" in await ran("servers", "list")
    assert await anyio.to_thread.run_sync(login) == "wiki: signed in.\n"
    listed = await ran("servers", "list", "--json")
    assert json.loads(listed) == [{"name": "wiki", "sign_in": "signed in"}]
    assert f"{issuer.url}:ann" in await ran("call", "wiki.who")
    assert "1 resources; signed in" in " ".join((await ran("doctor")).split())
    assert "wiki: not signed in." in await ran("servers", "logout", "wiki")
    assert "no server 'wik' with auth" in await ran("servers", "login", "wik")


PERSON = 'auth = { grant = "authorization_code" }'
MACHINE = """auth = { grant = "client_credentials", issuer = "https://id.example.org",
client_id = "host", client_secret = "${NOT_SET}" }""".replace("\n", " ")


@pytest.mark.parametrize(
    ("keys", "arguments", "reason"),
    [
        (f"enabled = false\n{PERSON}", ("login", "wiki"), "cannot be used: [servers.wiki] enabled"),
        (PERSON, ("login", "wik"), "did you mean 'wiki'?"),
        (MACHINE, ("logout", "wiki"), "${NOT_SET} is not set"),
        ("", ("login", "wiki"), "servers with auth: none"),
    ],
)
def test_a_server_at_which_nobody_can_sign_in_is_named(
    tmp_path: Path, keys: str, arguments: tuple[str, ...], reason: str
):
    file = tmp_path / "config.toml"
    file.write_text(f'[servers.wiki]\nurl = "https://wiki.example.org/mcp"\n{keys}')
    ran = CliRunner().invoke(cli, ["--config", str(file), "servers", *arguments])
    assert ran.exit_code
    assert reason in " ".join(f"{ran.output} {ran.exception}".split())
