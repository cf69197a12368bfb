"""Several processes on one port."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio import to_thread
from support.hosts import Install, names_of
from support.http import BOOKS, bearer, call_anew, http_client, patient_client, told_url
from support.peer import Peer
from support.waiting import WAIT, until

from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError
from standards_mcp_service.listening import check_workers
from standards_mcp_service.tokens import new_token, token_hash

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="workers are forked"),
]
SERVE = ("serve", "--transport", "http", "--port", "0", "--json-response")
BOTH = (*SERVE, "--workers", "2", "--stateless")
CLOSE = {"connection": "close"}
BROKEN = """
    from standards_mcp import Plugin

    class BooksPlugin(Plugin):
        def __init__(self, *args):
            raise RuntimeError("no books")
"""


@asynccontextmanager
async def served(*options: str) -> AsyncGenerator[tuple[Peer, str]]:
    peer = Peer(*options)
    try:
        yield peer, await to_thread.run_sync(told_url, peer)
    finally:
        peer.kill()


async def who(url: str) -> int:
    return int((await call_anew(url, "who"))["content"][0]["text"])


async def all_who(url: str, count: int = 2) -> set[int]:
    """Return who answers, once there are so many."""
    found: set[int] = set()
    with anyio.fail_after(WAIT):
        while len(found) < count:
            found.add(await who(url))
    return found


async def test_workers_share_a_port_reloads_and_the_replies_of_users(install: Install):
    install("books", BOOKS)
    Path("standards-mcp.toml").write_text("", encoding="utf-8")
    async with served(*BOTH) as (peer, url):
        workers = await all_who(url)
        assert peer.process.pid not in workers
        for mode in ("auto", "legacy"):
            async with http_client(url, mode=mode) as client:
                assert "who" in await names_of(client)

        asked = await call_anew(url, "lend")
        (key,) = asked["inputRequests"]
        reply = {key: {"action": "accept", "content": {"value": True}}}
        state = {"requestState": asked["requestState"], "inputResponses": reply}
        replied = set[str]()
        with anyio.fail_after(WAIT):
            while len(replied) < len(workers):
                replied.add((await call_anew(url, "lend", **state))["content"][0]["text"])
        assert replied == {f"True {each}" for each in workers}

        text = '[tools]\ndisable = ["lend"]\n'
        Path("standards-mcp.toml").write_text(text, encoding="utf-8")
        peer.process.send_signal(signal.SIGHUP)
        await until(lambda: peer.log().count("the configuration is reloaded") == 2, peer.log)

        killed = await who(url)
        os.kill(killed, signal.SIGKILL)
        await until(lambda: peer.log().count('"listening"') == 3, peer.log)
        (replacement,) = await all_who(url) - workers
        assert replacement != killed
        assert '"a worker ended, and is replaced"' in peer.log()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_during_a_call, peer)
            assert (await call_anew(url, "wait"))["content"][0]["text"] == "waited"
        assert await to_thread.run_sync(peer.process.wait, WAIT) == 0


async def end_during_a_call(peer: Peer) -> None:
    await until(Path("waiting").exists)
    peer.process.send_signal(signal.SIGTERM)
    await anyio.sleep(0.2)
    Path("go").touch()


async def is_served(url: str) -> bool:
    try:
        async with patient_client(base_url=url) as client:
            return (await client.get("/health/live")).is_success
    except httpx2.ConnectError:
        return False
    except httpx2.TransportError:  # it ends just now
        return True


async def test_an_error_at_the_start_of_workers_is_reported_once(install: Install):
    install("books", BROKEN)
    text = "[plugins.books]\nrequired = true\n"
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")
    peer = Peer(*BOTH)
    try:
        assert await to_thread.run_sync(peer.process.wait, WAIT) == 1
        await until(lambda: peer.log().count("no books") == 1, peer.log)
    finally:
        peer.kill()


async def test_a_switch_reaches_all_workers_and_their_metrics_have_different_labels(
    install: Install,
):
    install("books", BOOKS)
    file, text = Path("standards-mcp.toml"), "[server]\nadmin = true\nmetrics = true\n"
    file.write_text(text, encoding="utf-8")
    async with served(*BOTH) as (peer, url), patient_client(headers=CLOSE) as http:
        workers = await all_who(url)
        for action, count in (("disable", 1), ("enable", 2)):
            form = {"tool": "lend", "action": action}
            pressed = await http.post(f"{url}/admin/tools", data=form, headers={"origin": url})
            assert pressed.status_code == 303
            # Whoever answers has taken it over by then, or waits for it.
            for _ in range(4):
                page = (await http.get(f"{url}/admin/tools?changed=lend")).text
                said = "lend is served." if action == "enable" else "lend is not served: "
                assert said in page
            # The one that changed it does so twice, which changes nothing more.
            await until(
                lambda wanted=3 * count: (
                    peer.log().count("the configuration is reloaded") == wanted
                ),
                peer.log,
            )
        assert file.read_text(encoding="utf-8") == text
        found = set[str]()
        with anyio.fail_after(WAIT):
            while len(found) < len(workers):
                lines = (await http.get(f"{url}/metrics")).text.splitlines()
                samples = [line for line in lines if not line.startswith("#")]
                pids = {re.search(r'pid="(\d+)"', sample)[1] for sample in samples}
                assert len(pids) == 1, "a scrape is of one worker"
                found |= pids
        assert found == {str(worker) for worker in workers}


async def test_a_token_that_is_made_and_revoked_on_the_admin_page_counts_for_all_workers(
    install: Install,
):
    install("books", BOOKS)
    root = new_token()
    text = f'[server]\nadmin = true\n[server.auth.tokens.root]\nsha256 = "{token_hash(root)}"\n'
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")
    async with served(*BOTH) as (peer, url):
        own = {**CLOSE, **bearer(root), "origin": url}
        address = f"{url}/admin/tokens"

        async def statuses(token: str) -> set[int]:
            """Return the answers of both workers, of which the system chooses one at a time."""
            async with patient_client(headers={**CLOSE, **bearer(token)}) as client:
                return {(await client.get(f"{url}/health")).status_code for _ in range(12)}

        async def is_answered(token: str, status: int) -> None:
            with anyio.fail_after(WAIT):
                while await statuses(token) != {status}:
                    pass

        async with patient_client(headers=own) as http:
            made = await http.post(address, data={"action": "create", "name": "eve", "scope": "*"})
            secret = re.findall(r'<pre class="code secret">(.*)</pre>', made.text)[0]
            await is_answered(secret, 200)
            for _ in range(4):
                assert "eve" in (await http.get(f"{address}?changed=eve")).text
            asked = await http.post(address, data={"action": "revoke", "name": "eve"})
            key = re.findall(r'name="confirmed" value="(.*?)"', asked.text)[0]
            form = {"action": "revoke", "name": "eve", "confirmed": key}
            assert (await http.post(address, data=form)).status_code == 303
            await is_answered(secret, 401)
            assert await statuses(root) == {200}
        assert secret not in peer.log()


def test_several_workers_keep_no_sessions():
    with pytest.raises(ConfigError, match="add --stateless or"):
        check_workers(HttpSettings(workers=2))
    check_workers(HttpSettings(workers=2, stateless=True))
    check_workers(HttpSettings())


async def test_a_worker_that_replaces_another_asks_for_tokens_and_all_end_with_their_parent(
    install: Install,
):
    install("books", BOOKS)
    token = new_token()
    table = f'[server.auth.tokens.ann]\nsha256 = "{token_hash(token)}"\n'
    Path("standards-mcp.toml").write_text(table, encoding="utf-8")
    async with served(*BOTH) as (peer, url):
        worker = next(each["pid"] for each in peer.events() if "pid" in each)
        Path("standards-mcp.toml").write_text("", encoding="utf-8")
        await until(lambda: peer.log().count('"listening"') == 2, peer.log)
        os.kill(worker, signal.SIGKILL)
        await until(lambda: peer.log().count('"listening"') == 3, peer.log)
        async with patient_client(base_url=url) as client:
            for _ in range(10):
                assert (await client.get("/health", headers=CLOSE)).status_code == 401
        peer.process.kill()
        with anyio.fail_after(WAIT):
            while await is_served(url):
                pass
