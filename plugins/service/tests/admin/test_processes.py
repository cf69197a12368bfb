"""Imports by a real service of two workers, while it answers calls, and after it was killed."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio import to_thread
from support.http import call_anew, patient_client, told_url
from support.peer import Peer
from support.waiting import PAUSE, WAIT, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="workers are forked"),
]
SETTINGS = """
[server]
admin = true
port = 0
workers = 2
stateless = true
json_response = true

[server.audit]
path = "audit.jsonl"
"""
VERBS = ("count", "compare", "sort", "measure", "draw", "build", "explain", "write", "model")
NOUNS = ("gears", "tides", "maps", "poems", "fractions", "shadows", "seeds", "bridges", "kites")
PLACES = ("with a partner", "by a table", "from two sources", "with tools of wood", "outdoors")
GROUPS = ("alone", "in pairs")


def table(name: str, count: int) -> bytes:
    """Return a table of standards in our own words, the last one without a text."""
    lines = ["code,text,grades,subject,jurisdiction,set_title"]
    texts = (" ".join(words) for words in product(VERBS, NOUNS, NOUNS, PLACES, GROUPS))
    for number, text in zip(range(count), texts, strict=False):
        lines.append(f"{name}.{number},Students {text} {name},3,Crafts,Ownland,{name} {number % 9}")
    return "\n".join([*lines, f"{name}.bad,,3,Crafts,Ownland,{name} 0"]).encode()


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[Peer, str]]:
    file = Path("standards-mcp.toml")
    file.write_text(SETTINGS, encoding="utf-8")
    peer = Peer("serve", "--transport", "http")
    try:
        url = await to_thread.run_sync(told_url, peer)
        await until(lambda: peer.log().count('"listening"') == 2, peer.log)
        yield peer, url
    finally:
        peer.kill()


async def upload(url: str, content: bytes) -> httpx2.Response:
    async with patient_client(headers={"origin": url}) as http:
        files = {"file": ("own.csv", content)}
        return await http.post(f"{url}/admin/data", data={"address": ""}, files=files)


async def page(url: str) -> str:
    async with patient_client() as http:  # a new connection, so that any worker may answer
        return " ".join((await http.get(f"{url}/admin/data")).text.split())


async def until_page(url: str, part: str) -> str:
    with anyio.fail_after(WAIT):
        while part not in (text := await page(url)):  # noqa: ASYNC110  - of another process
            await anyio.sleep(PAUSE)
    return text


async def find(url: str, text: str) -> str:
    arguments = {"activity": text, "max_results": 3}
    answer = await call_anew(url, "find_relevant_standards", arguments=arguments)
    assert not answer.get("isError"), answer
    return str(answer)


@pytest.mark.usefixtures("own_catalog")
async def test_calls_go_on_during_an_import_that_all_workers_show():
    async with served() as (_, url):
        calls, workers = list[str](), set[str]()
        is_over = anyio.Event()

        async def call() -> None:
            while not is_over.is_set():
                calls.append(await find(url, "sorting shapes and counting gears"))

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(call)
            assert (await upload(url, table("A", 4000))).status_code == 303
            with anyio.fail_after(WAIT):
                while "Last import of own.csv" not in (text := await page(url)):
                    assert "Import of own.csv" in text
                    workers |= set(re.findall(r"Process (\d+) of 2", text))
            is_over.set()
        assert "4,000 records written." in text
        assert "own.csv: line 4002 (A.bad): no text" in text
        assert len(workers) == 2
        assert calls
        for _ in range(6):  # in both workers
            assert "count gears maps by a table alone A" in await find(
                url, "count gears maps by a table alone A"
            )


@pytest.mark.usefixtures("own_catalog")
async def test_a_killed_service_leaves_the_catalog_whole_and_says_so():
    async with served() as (peer, url):
        assert (await upload(url, table("B", 4000))).status_code == 303
        await until_page(url, "Embedding and indexing new texts: ")
        log = peer.log()
        pids = [*map(int, re.findall(r'"listening".*?"pid": (\d+)', log)), peer.process.pid]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not any(map(is_running, pids[:-1])))
    async with served() as (_, url):
        text = await page(url)
        assert "The service ended while the import was running." in text
        assert not [*Path().rglob("own.csv")]
        assert "3.NF" in await find(url, "fractions on a number line")
        assert (await upload(url, table("B", 4000))).status_code == 303
        text = await until_page(url, 'Last import of own.csv</h2> <p><span class="badge good">')
        assert "count gears maps by a table alone B" in await find(
            url, "count gears maps by a table alone B"
        )
    log = Path("audit.jsonl").read_text("utf-8")
    outcomes = re.findall('"event": "import ended".*?"outcome": "([a-z]+)"', log)
    assert outcomes == ["interrupted", "done"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
