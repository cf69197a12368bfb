"""People at a service of several processes, all of which read their cookies."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.http import free_port, patient_client
from support.openid import CLIENT, SECRET, Browser, Provider
from support.peer import Peer
from support.waiting import until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="workers are forked"),
]
WORKERS = 2
REQUESTS = 20
"""Enough for each worker to answer some."""


async def test_all_workers_know_who_has_signed_in_and_who_has_signed_out(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    port = free_port()
    text = f"""
[server]
port = {port}
workers = {WORKERS}
stateless = true

[server.auth.oidc]
issuer = "{provider.url}"
client_id = "{CLIENT}"
public_url = "http://127.0.0.1:{port}"
groups = {{ teachers = ["*"] }}
"""
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__AUTH__OIDC__CLIENT_SECRET", SECRET)
    peer = Peer("serve", "--transport", "http")
    try:
        await until(lambda: [each["event"] for each in peer.events()].count("listening") == WORKERS)
        browser = Browser(f"http://127.0.0.1:{port}")
        await browser.sign_in("/connect")
        kept = dict(browser.cookies)
        for _ in range(REQUESTS):
            assert (await browser.get("/connect")).status_code == 200
        await browser.post("/sign-out")
        for _ in range(REQUESTS):
            browser.cookies = dict(kept)
            assert (await browser.get("/connect")).status_code == 303
        await browser.sign_in("/connect")
        kept = dict(browser.cookies)
        async with patient_client() as client:
            token = {"logout_token": provider.logout_token()}
            done = await client.post(f"{browser.url}/backchannel-logout", data=token)
        assert done.status_code == 200
        for _ in range(REQUESTS):
            browser.cookies = dict(kept)
            assert (await browser.get("/connect")).status_code == 303
        log = str(peer.events())
    finally:
        peer.kill()
    assert f"'caller': '{provider.url}:ann'" in log
    assert SECRET not in log
    assert kept["__Host-standards-mcp"] not in log
