"""The plugin in real processes: killed, several at once, and for a long time."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from standards_mcp.testing import Allowed, check_plugin
from standards_mcp_memory.plugin import MemoryPlugin

Run = Callable[..., Any]
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
KILLS = int(os.environ.get("KILLS", "20"))
CALLS = int(os.environ.get("CALLS", "1000"))
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import qdrant_client
from standards_mcp_memory.commands import Place
from standards_mcp_memory.import_commands import import_memories
from standards_mcp_memory.settings import MemorySettings

settings = MemorySettings(path=sys.argv[2], model=sys.argv[3])
command = Place(settings, Path()).bound(import_memories)
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


class Serving:
    """A server over stdio."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-m", "standards_mcp", "--config", str(config), "serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        about = {"name": "test", "version": "1"}
        protocol = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.ask("initialize", protocol)

    def ask(self, method: str, parameters: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if (answer := json.loads(line)).get("id") == 1:
                return answer["result"]
        raise AssertionError("the server has ended")

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def test_two_servers_and_a_command_take_turns_with_a_folder(run: Run, config: Path, tmp_path: Path):
    with config.open("a") as file:
        file.write("writable = true\nidle_close = 0.1\nlock_wait = 60\n")
    (tmp_path / "notes.md").write_text("## From a command\n\nIt is there.\n")
    one, two = Serving(config), Serving(config)

    def store(server: Serving, name: str) -> None:
        for number in range(5):
            text = f"{name} {number}"
            assert server.call("memory_store", collection="c", title=text, content=text)["created"]

    threads = [
        threading.Thread(target=store, args=(server, name))
        for server, name in ((one, "one"), (two, "two"))
    ]
    for thread in threads:
        thread.start()
    run("import", "notes.md", "--collection", "c", "--split", "headings")
    for thread in threads:
        thread.join()
    listed = json.loads(run("list", "c", "--json").stdout)["memories"]
    assert len({each["id"] for each in listed}) == 11
    for server in (one, two):
        assert server.call("memory_search", query="there", collection="c")["count"] == 11
        server.close()


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

        await call(300)
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
