"""People at a service of several processes, all of which read their cookies."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from support.http import free_port, patient_client
from support.openid import CLIENT, SECRET, Browser, Provider
from support.peer import Peer
from support.waiting import until

from standards_mcp_service.people.cookies import Cookies

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


def test_an_earlier_logout_in_another_process_takes_no_later_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder, now, set_time = tmp_path / "signed-out", int(time.time()), os.utime
    later = threading.Thread(target=Cookies(None, "", folder, 60).end, args=("key", now))

    def let_the_other_begin(file: Path, times: tuple[float, float]) -> None:
        if times[0] < now:
            later.start()
            later.join(0.3)
        set_time(file, times)

    monkeypatch.setattr("standards_mcp_service.people.cookies.os.utime", let_the_other_begin)
    Cookies(None, "", folder, 60).end("key", now - 10)
    later.join()
    assert (folder / "key").stat().st_mtime == now
