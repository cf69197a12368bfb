"""The plugin in real processes: killed, several at once, and for a long time."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from standards_mcp.testing import Allowed, check_plugin
from standards_mcp_memory.plugin import MemoryPlugin
from standards_mcp_memory.records import Draft
from standards_mcp_memory.service import open_memory
from standards_mcp_memory.settings import MemorySettings
from standards_mcp_memory.writing import Writer

Run = Callable[..., Any]
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
KILLS = int(os.environ.get("KILLS", "8"))
CALLS = int(os.environ.get("CALLS", "300"))
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import qdrant_client
from standards_mcp_encoders import EmbeddingClient
from standards_mcp_memory.commands import MemoryLocation
from standards_mcp_memory.import_commands import import_memories
from standards_mcp_memory.settings import MemorySettings

settings = MemorySettings(path=sys.argv[2], model=sys.argv[3])
command = MemoryLocation(settings, Path()).bind(import_memories)
chance = random.Random(17)

def written():
    try:
        return [each.stat().st_size for each in Path(sys.argv[2]).rglob("storage.sqlite*")]
    except FileNotFoundError:
        return []

for number in range(int(sys.argv[1])):
    # A copy of this process has imported all already.
    process = os.fork()
    if process == 0:
        os._exit(command.main(sys.argv[4:], standalone_mode=False))
    if number % 2:
        before, until = written(), time.monotonic() + 10
        while written() == before and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(0.2)  # so that some kills come after a batch, also on a busy machine
    time.sleep(chance.uniform(0, 0.3))
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    print("killed" if os.WIFSIGNALED(status) else "ended", flush=True)
"""


def test_an_import_that_is_killed_goes_on_where_it_stopped(
    run: Run, tmp_path: Path, fast: dict[str, str], encoder: Any
):
    encoder.pause = 0.03
    rows = [{"title": f"t{number}", "content": f"c{number}"} for number in range(3000)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [str(tmp_path / "memories"), fast["model"], "m.jsonl", "--collection", "c"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLER, str(KILLS), *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert killed.stdout.count("killed") >= KILLS // 2, killed.stderr
    encoder.pause = 0
    asked = len(encoder.asked)
    answer = json.loads(run("import", "m.jsonl", "--collection", "c", "--json").stdout)
    assert answer["created"] + answer["unchanged"] == 3000
    assert answer["unchanged"] > 0, "what was written stays"
    texts = sum(len(body["input"]) for _, _, body in encoder.asked[asked:])
    assert texts <= answer["created"] + 2, "vectors are reused"
    lines = [json.loads(line) for line in run("export", "c").stdout.splitlines()]
    assert sorted(each["content"] for each in lines) == sorted(row["content"] for row in rows)
    assert len({each["id"] for each in lines}) == 3000


@pytest.mark.anyio
async def test_programs_take_turns_with_a_folder(tmp_path: Path, fast: dict[str, Any]):
    place = {"path": str(tmp_path / "memories"), "idle_close": 0.1, "lock_wait": 60, **fast}
    settings = MemorySettings.model_validate(place)
    # The locks are those of open files, so two stores in one process exclude each other, too.

    async def store(name: str) -> None:
        async with open_memory(settings, tmp_path) as memory:
            for number in range(5):
                draft = Draft(f"{name} {number}", name)
                assert (await Writer(memory).store(draft, "c"))["created"]

    async with anyio.create_task_group() as group:
        for name in ("one", "two", "three"):
            group.start_soon(store, name)
    async with open_memory(settings, tmp_path) as memory:
        ids = [document.id for document in await memory.read_all("c")]
        assert (len(ids), len({*ids})) == (15, 15)
        answer, _ = await memory.search("three", "c", 20)
        assert answer["count"] == 15


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.anyio
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_memory_stays_flat_over_many_calls(open_memory: OpenMemory, encoder: Any):
    async with open_memory(path=":memory:") as client:
        for number in range(20):
            memory = {"collection": "c", "title": f"t{number}", "content": f"c{number}"}
            await client.call_tool("memory_store", memory)

        async def call(count: int) -> None:
            references = [{"doc_id": each, "collection": "c"} for each in range(1, 21)]
            for number in range(count // 3):
                for tool, arguments in (
                    ("memory_search", {"query": f"what {number}", "collection": "c"}),
                    ("memory_fetch", {"doc_id": number % 30 + 1, "collection": "c"}),
                    ("memory_batch_fetch", {"doc_refs": references}),
                ):
                    await client.call_tool(tool, arguments)
                # It notes each request, in this process.
                encoder.asked.clear()
                encoder.headers.clear()

        await call(100)
        gc.collect()
        before = resident()
        await call(CALLS)
        gc.collect()
        assert resident() - before < 20_000_000


def test_the_plugin_keeps_the_rules(encoder: Any, tmp_path: Path):
    place = {"collection": "c"}
    check_plugin(
        MemoryPlugin,
        name="memory",
        calls=[
            ("memory_store", {**place, "title": "Bees", "content": "Hum."}),
            ("memory_search", {**place, "query": "bees"}),
            ("memory_fetch", {**place, "doc_id": 1}),
            ("memory_batch_fetch", {"doc_refs": [{**place, "doc_id": 1}]}),
            ("memory_update", {**place, "doc_id": 1, "title": "Wasps"}),
            ("memory_list_collections", {}),
            ("memory_delete", {**place, "doc_id": 1}),
        ],
        allow=Allowed(destructive=("memory_store", "memory_update", "memory_delete")),
        path=str(tmp_path / "memories"),
        model=f"{encoder.url}/v1/embeddings#letters",
        writable=True,
    )
