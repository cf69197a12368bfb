"""Memory: 20,000 memories in an embedded store, beside qdrant-client called directly.

usage: .venv-memory/bin/python benchmarks/memory.py [--rows 20000] [--calls 200] [--encoded 512]

The server answers over stdio with the plugin `memory`. The peer is qdrant-client in a process of
its own, with a store that it wrote itself and the same encoder: a lock lets ten threads use it.
Both get the same memories of 100 made-up words and the same queries, in turn. Memory is what the
server's process has after all calls, above one without the plugin.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from knowledge import StdioClient, p95, resident
from typing_extensions import override

from standards_mcp_encoders import encoder_name, open_encoder
from standards_mcp_memory.encoders import Encoder, Kind
from standards_mcp_memory.records import Draft, Vectors
from standards_mcp_memory.service import open_memory
from standards_mcp_memory.settings import MemorySettings
from standards_mcp_memory.writing import Writer

DIMENSIONS = 384
WORDS = [f"word{number}" for number in range(3000)]
QUERIES = [f"How does part {number} of the machine work in winter?" for number in range(50)]
PEER = """
import sys, threading, time, warnings
began = time.perf_counter()
from mcp.server.mcpserver import MCPServer
from standards_mcp_encoders import open_encoder
from typing import Any

opened = {}
lock = threading.Lock()

def client():
    with lock:
        if not opened:
            from qdrant_client import QdrantClient
            warnings.simplefilter("ignore")
            place = {"path": sys.argv[1], "force_disable_check_same_thread": True}
            opened.update(client=QdrantClient(**place), encoder=open_encoder("minilm"))
    return opened["client"], opened["encoder"]

server = MCPServer("peer")

@server.tool()
def search(query: str) -> dict[str, Any]:
    "Search."
    qdrant, encoder = client()
    vector = encoder.encode([query])[0].tolist()
    with lock:
        keys = ["title", "preview"]
        found = qdrant.query_points("c", query=vector, limit=20, with_payload=keys).points
    return {"results": [{"id": each.id, "score": each.score, **each.payload} for each in found]}

@server.tool()
def fetch(ids: list[int]) -> dict[str, Any]:
    "Fetch."
    with lock:
        rows = client_of()[0].retrieve("c", ids=ids, with_payload=True)
    return {"documents": [{"id": each.id, **each.payload} for each in rows]}

def client_of():
    return opened["client"], opened["encoder"]

server.run("stdio")
"""


class RandomEncoder(Encoder):
    """Vectors that take no time, under the built-in model's name."""

    def __init__(self) -> None:
        super().__init__(MemorySettings())
        self._random = np.random.default_rng(17)

    @override
    async def name(self) -> str:
        return encoder_name("minilm")

    @override
    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        vectors = self._random.standard_normal((len(texts), DIMENSIONS)).astype("float32")
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_drafts(count: int) -> list[Draft]:
    chance = random.Random(17)  # noqa: S311  - the same words in each run
    texts = [" ".join(chance.choices(WORDS, k=100)) for _ in range(count)]
    return [Draft(text[:40], text, text[:150], ("made", "up")) for text in texts]


def write(path: Path, drafts: Sequence[Draft], encoder: Encoder) -> float:
    """Return how many memories a second are written into a folder."""

    async def run() -> float:
        async with open_memory(MemorySettings(path=str(path)), path) as memory:
            memory.encoder = encoder
            await memory.collections()
            await encoder.encode(["warm"], "document")
            began = time.perf_counter()
            await Writer(memory).write(drafts, "c", lambda _done, _total: None)
            return len(drafts) / (time.perf_counter() - began)

    return anyio.run(run)


def write_directly(path: Path, drafts: Sequence[Draft]) -> float:
    """Return the same for qdrant-client alone, in batches of 64, too."""
    from qdrant_client import QdrantClient, models

    vectors = np.random.default_rng(17).standard_normal((len(drafts), DIMENSIONS))
    client = QdrantClient(path=str(path))
    size = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
    client.create_collection("c", vectors_config=size)
    began = time.perf_counter()
    for start in range(0, len(drafts), 64):
        points = [
            models.PointStruct(
                id=row + 1,
                vector=vectors[row].tolist(),
                payload=dict(drafts[row].document(row + 1).payload),
            )
            for row in range(start, min(start + 64, len(drafts)))
        ]
        client.upsert("c", points=points)
    took = time.perf_counter() - began
    client.close()
    return len(drafts) / took


def host_command(folder: Path, *, with_plugin: bool = True) -> list[str]:
    pairs = {
        "state_dir": folder / "state",
        "plugins.memory.path": folder / "ours",
        "plugins.memory.idle_close": 3600,
        "plugins.memory.enabled": str(with_plugin).lower(),
    }
    options = [part for key, value in pairs.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "standards_mcp", *options, "serve"]


def timed(call: Callable[[int], object], calls: int, at_once: int) -> list[float]:
    def one(number: int) -> float:
        began = time.perf_counter()
        call(number)
        return (time.perf_counter() - began) * 1000

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(calls)))


def compare(name: str, calls: int, at_once: int, *both: Callable[[int], object]) -> None:
    found: list[float] = []
    for call in both:
        timed(call, 20, at_once)
        found.append(statistics.median(p95(timed(call, calls, at_once)) for _ in range(3)))
    ours, theirs = found
    print(f"{name}: p95 {ours:.0f} ms, direct {theirs:.0f} ms, ratio {ours / theirs:.2f}")


def first_call(
    command: list[str], tool: str, arguments: dict[str, Any]
) -> tuple[StdioClient, float]:
    """Return a new server, and how many seconds its first call took."""
    client = StdioClient(command)
    time.sleep(2)
    began = time.perf_counter()
    assert client.call(tool, arguments)["results"]
    return client, time.perf_counter() - began


def measure(folder: Path, rows: int, calls: int) -> None:
    def asked(number: int) -> str:
        return QUERIES[number % len(QUERIES)]

    question = {"query": QUERIES[0]}
    ours = host_command(folder)
    search = {**question, "collection": "c"}
    theirs = [sys.executable, "-c", PEER, str(folder / "theirs")]
    peer, peer_seconds = first_call(theirs, "search", question)
    host, seconds = first_call(ours, "memory_search", search)
    print(f"first call: {seconds:.1f} s, direct {peer_seconds:.1f} s")
    for at_once in (1, 10):
        compare(
            f"search, {at_once} at once",
            calls,
            at_once,
            lambda number: host.call("memory_search", {"query": asked(number), "collection": "c"})[
                "results"
            ][19],
            lambda number: peer.call("search", {"query": asked(number)})["results"][19],
        )

    def ids(number: int) -> list[int]:
        return [(number * 50 + each * 7) % rows + 1 for each in range(50)]

    compare(
        "batch of 50",
        calls,
        1,
        lambda number: host.call(
            "memory_batch_fetch",
            {"doc_refs": [{"doc_id": each, "collection": "c"} for each in ids(number)]},
        )["documents"][0],
        lambda number: peer.call("fetch", {"ids": ids(number)})["documents"][0],
    )
    sizes = resident(host.process.pid), resident(peer.process.pid)
    host.close()
    peer.close()
    bare = StdioClient(host_command(folder, with_plugin=False))
    bare.call("find_relevant_standards", {})  # refused; it has started then
    empty = resident(bare.process.pid)
    bare.close()
    print(
        f"memory: {sizes[0] - empty:.0f} MiB above an empty host ({empty:.0f} MiB), "
        f"the direct process {sizes[1]:.0f} MiB in all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--encoded", type=int, default=512)
    given = parser.parse_args()
    open_encoder("minilm")
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        folder = Path(home)
        drafts = make_drafts(given.rows)
        rate = write(folder / "ours", drafts, RandomEncoder())
        direct = write_directly(folder / "theirs", drafts)
        print(f"import, store alone: {rate:.0f} a second, direct {direct:.0f}")
        rate = write(folder / "encoded", drafts[: given.encoded], Encoder(MemorySettings()))
        print(f"import, encoder included: {rate:.0f} a second")
        measure(folder, given.rows, given.calls)


if __name__ == "__main__":
    main()
