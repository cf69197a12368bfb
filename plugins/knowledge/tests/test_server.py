"""A real server over stdio, as clients start it, while things go wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from support.peer import Peer

from standards_mcp.cli import run as run_program
from standards_mcp_encoders import Vectors

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("installed")]
MakeDataset = Callable[..., Path]
QUERY = "How do I turn one tool off?"
HEAVY = ("faiss", "onnxruntime", "tokenizers", "bs4", "docx", "pypdfium2", "numpy")
PROGRAM = f"""
import atexit, os, sys
from standards_mcp.__main__ import main
def tell():
    print("imported:", [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
end = os._exit
def end_at_once(code):  # while a thread is still at work
    tell()
    end(code)
atexit.register(tell)
os._exit = end_at_once
sys.exit(main())
"""


def options(root: Path, **settings: object) -> list[str]:
    """Return the options of the command line for a server of the datasets alone."""
    pairs = {
        "state_dir": root.parent / "state",
        "plugins.search.enabled": "false",
        "plugins.lookup.enabled": "false",
        "plugins.knowledge.root": root,
        **{f"plugins.knowledge.{key}": value for key, value in settings.items()},
    }
    return [part for key, value in pairs.items() for part in ("--set", f"{key}={value}")]


@asynccontextmanager
async def served(root: Path, **settings: object) -> AsyncGenerator[Client]:
    """Serve the datasets in a process; its log is in the same folder."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, *options(root, **settings), "serve"],
        env=dict(os.environ),
    )
    with (root.parent / "log").open("w", encoding="utf-8") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            yield client


def log_of(root: Path) -> list[dict[str, Any]]:
    lines = (root.parent / "log").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


async def answer(client: Client, tool: str = "search", **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(f"knowledge_{tool}", arguments)
    assert result.structured_content is not None
    return result.structured_content


async def test_the_server_that_install_writes_for_vs_code_answers_with_the_file_to_cite(
    make_dataset: MakeDataset, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make_dataset()
    config = tmp_path / "standards-mcp.toml"
    state = json.dumps(str(tmp_path / "state"))
    table = f"[plugins.knowledge]\nroot = {json.dumps(str(root))}\n"
    config.write_text(f"state_dir = {state}\n{table}", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert run_program(["--config", str(config), "install", "vscode", "--project"]) == 0
    entry = json.loads((tmp_path / ".vscode" / "mcp.json").read_text("utf-8"))["servers"][
        "standards"
    ]
    assert entry["type"] == "stdio"
    parameters = StdioServerParameters(
        command=entry["command"],
        args=entry["args"],
        env={**os.environ, **entry.get("env", {})},
        cwd=tmp_path,
    )
    async with Client(stdio_client(parameters)) as client:
        names = [each.name for each in (await client.list_tools()).tools]
        assert "knowledge_search" in names
        found = await answer(client, dataset="guide", query=QUERY)
        assert found["results"][0]["path"] == "docs/3.md"


def test_searches_are_in_the_log_and_heavy_libraries_in_workers_only(
    make_dataset: MakeDataset, root: Path
):
    make_dataset()
    (root / "bad.manifest.json").write_text("{}", "utf-8")
    # The SDK's client kills a server that takes long to end, and its last line would be lost.
    server = Peer(*options(root), "serve", command=[sys.executable, "-c", PROGRAM])
    try:
        server.initialize()
        server.call(1, "knowledge_search", dataset="guide", query="two\nlines key=hunter2")
        server.answers(1)
        server.call(2, "knowledge_search", dataset="zoo", query=QUERY)
        server.answers(1)
        server.end()
    finally:
        server.kill()
    assert "hunter2" not in server.log()
    assert "imported: []" in server.log()
    events = {event["event"]: event for event in server.events()}
    ready = events["knowledge ready"]
    assert (ready["datasets"], ready["errors"], ready["version"]) == (1, 1, "0.1.0")
    assert ready["milliseconds"] > 0
    left_out = events["dataset left out"]
    assert (left_out["dataset"], left_out["error_type"]) == ("bad", "manifest")
    assert left_out["manifest"] == str(root / "bad.manifest.json")
    searches = [event for event in server.events() if event["event"] == "knowledge search"]
    assert (
        searches[0].items()
        >= {
            "tool": "knowledge.search",
            "dataset": "guide",
            "query": "two lines key=***",
            "result_count": 5,
            "outcome": "ok",
        }.items()
    )
    assert (searches[1]["outcome"], searches[1]["result_count"]) == ("not_found", 0)


async def test_killing_workers_during_400_calls_costs_a_call_each_at_most(
    make_dataset: MakeDataset, root: Path
):
    make_dataset()
    outcomes: list[bool] = []
    kills = 0

    async with served(root) as client:
        await answer(client, dataset="guide", query=QUERY)

        async def ask(times: int) -> None:
            for _ in range(times):
                with anyio.fail_after(60):
                    found = await answer(client, dataset="guide", query=QUERY)
                outcomes.append("success" not in found)
                assert found.get("error_type", "api_error") == "api_error"

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(ask, 40)
            for number in range(50, 400, 50):
                while len(outcomes) < number:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
                kills += kill_one(root)
    assert len(outcomes) == 400
    assert kills >= 2
    assert outcomes.count(False) <= kills
    ended = [each for each in log_of(root) if each["event"] == "worker ended"]
    assert {each["cause"] for each in ended} == {"signal SIGKILL"}
    assert len(ended) == kills


def kill_one(root: Path) -> int:
    """Kill a worker of the server that has the folder among its arguments."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            is_worker = b"knowledge.workers" in (folder / "cmdline").read_bytes()
            is_ours = str(root).encode() in Path(f"/proc/{parent}/cmdline").read_bytes()
        except OSError:
            continue
        if is_worker and is_ours and state != "Z":
            os.kill(int(folder.name), signal.SIGKILL)
            return 1
    return 0


def damaged(good: bytes, other: bytes, number: int, random: random.Random) -> bytes:
    """Return a file with one of five kinds of damage."""
    place = random.randrange(len(good))
    kinds = (
        lambda: good[:place],
        lambda: good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :],
        lambda: other,
        lambda: b"" if number % 2 else random.randbytes(100),
        # Sizes in the first 50 bytes that are far too large.
        lambda: good[: 4 + number % 40] + b"\xff" * 7 + b"\x7f" + good[12 + number % 40 :],
    )
    return kinds[number % len(kinds)]()


KINDS = ("Flat", "HNSW8", "IVF2,Flat", "PQ8x2")


async def test_60_damaged_files_stop_no_other_dataset(
    make_dataset: MakeDataset, root: Path, vectors: Vectors
):
    chance = random.Random(16)  # noqa: S311
    rows = np.ascontiguousarray(np.tile(vectors, (8, 1)))
    texts = [{"path": f"{row}.md", "content": "text"} for row in range(len(rows))]
    make_dataset("good")
    for number in range(60):
        kind = KINDS[number // 5 % len(KINDS)]
        folder = make_dataset(f"bad-{number}", kind=kind, rows=rows, metadata=texts)
        index, metadata = folder / "docs.index", folder / "metadata.json"
        files = (index, metadata) if number % 4 else (metadata, index)
        contents = [each.read_bytes() for each in files]
        files[0].write_bytes(damaged(contents[0], contents[1], number, chance))
    async with served(root) as client:
        with anyio.fail_after(120):
            found = await until_known(client)
        assert found["counts"]["total"] == 61
        assert found["counts"]["errors"] > 30
        for each in found["datasets"]:
            if each["id"] == "good":
                assert each["status"] == "ready"
            assert "\n" not in each.get("error", "")
        # Undetected damage, such as a flipped bit in a vector, may be searched.
        for each in found["datasets"]:
            if each["status"] == "ready":
                await answer(client, dataset=each["id"], query=QUERY)
        hits = (await answer(client, dataset="good", query=QUERY))["results"]
        assert hits[0]["path"] == "docs/3.md"


async def until_known(client: Client) -> dict[str, Any]:
    while "success" in (found := await answer(client, "listDatasets", includeErrors=True)):
        assert found["error_type"] == "api_error"
        await anyio.sleep(0.2)
    return found


async def test_20_datasets_are_served_while_the_folder_changes(
    make_dataset: MakeDataset, root: Path
):
    for number in range(20):
        make_dataset(f"set-{number}")
    async with served(root, reload_seconds=0) as client:
        await until_known(client)
        done = anyio.Event()

        async def change() -> None:
            for number in range(20):
                shutil.rmtree(root / "set-0", ignore_errors=True)
                make_dataset("set-0", metric=("ip", "l2")[number % 2])
                (root / "set-1/manifest.json").write_text("{" * (number % 2), "utf-8")
                await anyio.sleep(0.05)
            done.set()

        async def ask(number: int) -> None:
            while not done.is_set():
                found = await answer(client, dataset=f"set-{number}", query=QUERY)
                assert found["results"][0]["path"] == "docs/3.md"

        async with anyio.create_task_group() as group:
            group.start_soon(change)
            for number in range(2, 8):
                group.start_soon(ask, number)
        make_dataset("set-1")
        found = await answer(client, "listDatasets")
        assert found["counts"] == {"total": 20, "ready": 20, "errors": 0}
