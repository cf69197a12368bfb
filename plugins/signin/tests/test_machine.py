"""The host signs in as itself: client credentials."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.hosts import MakeHost, started, until_answered
from support.http import client_of

from standards_mcp.config.timing import Timing
from standards_mcp.loading.health import check_health

pytestmark = pytest.mark.anyio
AuthOf = Callable[..., dict[str, Any]]


async def test_the_host_signs_in_and_calls(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf
):
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of(scopes=["read"])}})
        async with started(host):
            for _ in range(2):
                called = await host.call_tool("wiki_who", {})
                assert called.content[0]["text"] == f"{issuer.url}:host"
            health = (await check_health(host.manager))["wiki"]
            assert health.message == "2 tools, 1 prompts, 1 resources; signs in as host"
    (sent,) = issuer.requests
    assert sent == {"grant_type": "client_credentials", "resource": url, "scope": "read"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_callers_of_every_generation_share_the_account_of_the_host(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf, mode: str
):
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}}, server={"port": 0})
        async with client_of(host, mode=mode) as client:
            called = await client.call_tool("wiki_who", {})
            assert called.content[0].text == f"{issuer.url}:host"


async def test_an_expired_or_refused_token_is_replaced(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf
):
    issuer.lifetime = 20  # less than the margin, so that each call gets a token
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}})
        async with started(host):
            await host.call_tool("wiki_who", {})
            count = len(issuer.requests)
            assert not (await host.call_tool("wiki_who", {})).is_error
            assert len(issuer.requests) > count
            issuer.lifetime = 600
            issuer.next_audience = "https://another.example.org"  # the server refuses it
            assert not (await host.call_tool("wiki_who", {})).is_error


async def test_an_issuer_that_is_down_is_named_and_tried_again(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf
):
    issuer.status = 503
    async with upstream() as url:
        servers = {"wiki": {"url": url, "auth": auth_of()}, "plain": {"url": url}}
        host = make_host(servers=servers, timing=Timing(retry=0.1))
        async with started(host):
            record = host.manager.records["wiki"]
            where = issuer.url.removeprefix("http://")
            why = f"Signing in at server 'wiki' failed: the authorization server {where} answers"
            assert f"{why} with HTTP 503." in record.reason
            issuer.status = 0
            with anyio.fail_after(30):
                while not host.visible().find("wiki_who"):  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            await until_answered(host, "wiki_who")


async def test_a_token_is_used_to_its_end_while_the_issuer_is_down(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf
):
    issuer.lifetime = 25
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}})
        async with started(host):
            await host.call_tool("wiki_who", {})
            issuer.status = 500
            assert not (await host.call_tool("wiki_who", {})).is_error
            assert not (await host.call_tool("wiki_who", {})).is_error


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"issuer": "https://evil.example.org"}, "is of another issuer"),
        ({"token_endpoint": "http://evil.example.org/token"}, "is not an https address"),
        ({"token_endpoint": None}, "is not valid"),
    ],
)
async def test_metadata_that_would_lead_the_secret_elsewhere_is_refused(
    make_host: MakeHost,
    issuer: Any,
    upstream: Any,
    auth_of: AuthOf,
    change: dict[str, Any],
    reason: str,
):
    issuer.metadata = change
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}})
        async with started(host):
            assert reason in host.manager.records["wiki"].reason
    assert issuer.requests == []


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("{}/tenant", "{}/tenant has no metadata of an authorization server"),
        ("http://127.0.0.1:9", "127.0.0.1:9 cannot be reached (ConnectError)"),
    ],
)
async def test_an_issuer_that_is_not_there_is_told(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf, place: str, reason: str
):
    async with upstream() as url:
        auth = auth_of(issuer=place.format(issuer.url))
        host = make_host(servers={"wiki": {"url": url, "auth": auth}})
        async with started(host):
            assert reason.format(issuer.url) in host.manager.records["wiki"].reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"token_type": "DPoP"}, "sends a token of the type 'DPoP'"),
        ({"access_token": None}, "sends no access token"),
        ({"access_token": "a\nb"}, "sends no access token"),
    ],
)
async def test_an_answer_without_a_token_that_can_be_sent_is_refused(
    make_host: MakeHost,
    issuer: Any,
    upstream: Any,
    auth_of: AuthOf,
    changes: dict[str, Any],
    reason: str,
):
    issuer.changes = changes
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}})
        async with started(host):
            assert reason in host.manager.records["wiki"].reason


async def test_a_redirect_is_not_followed_and_a_long_answer_not_read(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: AuthOf
):
    async with upstream() as url:
        for place, reason in (("moved", "HTTP 307 and no JSON object"), ("long", "is too long")):
            auth = auth_of(token_url=f"{issuer.url}/{place}", issuer=None)
            host = make_host(servers={"wiki": {"url": url, "auth": auth}})
            async with started(host):
                assert reason in host.manager.records["wiki"].reason
    assert issuer.requests == []


async def test_a_client_that_the_issuer_refuses_is_told_so_without_its_secret(
    make_host: MakeHost,
    issuer: Any,
    upstream: Any,
    auth_of: AuthOf,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setenv("CLIENT_SECRET", "a wrong secret of the client")
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}})
        async with started(host):
            assert "refuses it (invalid_client: " in host.manager.records["wiki"].reason
    assert issuer.requests
    assert "wrong secret" not in caplog.text + str(vars(host)) + repr(host.settings)


async def test_no_token_is_in_logs_errors_and_the_audit_log(
    make_host: MakeHost,
    issuer: Any,
    upstream: Any,
    auth_of: AuthOf,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG, "standards_mcp")
    issuer.lifetime = 20
    audit = tmp_path / "audit.jsonl"
    async with upstream() as url:
        settings = {"port": 0, "audit": {"path": audit, "arguments": "redacted"}}
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of()}}, server=settings)
        async with client_of(host) as client:
            token = (await client.call_tool("wiki_who", {})).content[0].text
            echoed = await client.call_tool("wiki_fail", {"text": "Bearer"})
    assert issuer.given
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line.get("plugin") for line in lines[1:-1]] == ["wiki", "wiki"]
    assert "Bearer" in str(echoed)
    texts = audit.read_text() + str(echoed) + token
    assert not any(secret in texts for secret in issuer.given)
    logged = "\n".join(
        host.mask(record.getMessage() + str(vars(record))) for record in caplog.records
    )
    assert not any(secret in logged for secret in issuer.given)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ({"command": "x"}, "auth needs a url"),
        ({"url": "https://a", "headers": {"Authorization": "x"}}, "no header Authorization"),
    ],
)
def test_auth_is_for_servers_with_a_url_and_without_another_token(
    make_host: MakeHost, auth_of: AuthOf, server: dict[str, Any], reason: str
):
    with pytest.raises(ValueError, match=reason):
        make_host(servers={"wiki": server | {"auth": auth_of()}})


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"client_secret": "literal"}, "a variable of the environment"),
        ({"client_id": None}, "needs client_id and client_secret"),
        ({"issuer": None}, "so that no other server gets the secret"),
        ({"issuer": "http://id.example.org"}, "use https"),
        ({"scopes": ["a b"]}, "a scope without spaces"),
    ],
)
def test_a_sign_in_that_cannot_be_safe_is_refused(
    make_host: MakeHost, auth_of: AuthOf, keys: dict[str, Any], reason: str
):
    with pytest.raises(ValueError, match=reason):
        make_host(servers={"wiki": {"url": "https://a", "auth": auth_of() | keys}})


async def test_a_token_is_not_sent_to_a_server_without_https(make_host: MakeHost, auth_of: AuthOf):
    host = make_host(servers={"wiki": {"url": "http://wiki.example.org/mcp", "auth": auth_of()}})
    assert "is not an https address" in host.manager.records["wiki"].reason
