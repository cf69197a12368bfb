"""Knowledge: searches of five datasets over stdio and HTTP, beside FAISS in a bare `MCPServer`.

usage: .venv-knowledge/bin/python benchmarks/knowledge.py [--rounds 3] [--calls 300]

Five datasets of 20,000 x 384 are made once. The host searches them in two worker processes; the
peer calls the same encoder and FAISS in its own process, with what these use by default. Both
answer the same queries in turn, for one client and for ten at once. Then a sixth, corrupt dataset
is added for the host, and the same is measured again. Memory is that of the host's process, with
the plugin and without it, and of one worker.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from start import INITIALIZE

ROWS, DIMENSIONS = 20_000, 384
QUERIES = [f"How does part {number} of the machine work in winter?" for number in range(50)]
PEER = """
import json, sys
from pathlib import Path
import faiss
from mcp.server.mcpserver import MCPServer
from standards_mcp_encoders import open_encoder
from typing_extensions import TypedDict

class Found(TypedDict):
    results: list[dict[str, str | float]]

root = Path(sys.argv[1])
encoder = open_encoder("minilm")
sets = {}
for folder in sorted(root.glob("set-*")):
    index = faiss.read_index(str(folder / "docs.index"))
    sets[folder.name] = index, json.loads((folder / "metadata.json").read_text())
server = MCPServer("peer")

@server.tool()
def search(dataset: str, query: str) -> Found:
    "Search."
    index, documents = sets[dataset]
    scores, rows = index.search(encoder.encode([query]), 5)
    pairs = zip(scores[0].tolist(), rows[0].tolist())
    keys = ("id", "title", "path")
    return {"results": [
        {"score": score, "snippet": documents[row]["content"][:200]}
        | {key: documents[row][key] for key in keys} for score, row in pairs
    ]}

server.run("stdio")
"""


def make_datasets(root: Path) -> None:
    import faiss
    import numpy as np

    random = np.random.default_rng(16)
    for number in range(5):
        folder = root / f"set-{number}"
        folder.mkdir(parents=True)
        vectors = random.standard_normal((ROWS, DIMENSIONS)).astype("float32")
        faiss.normalize_L2(vectors)
        index = faiss.IndexFlatIP(DIMENSIONS)
        index.add(vectors)
        faiss.write_index(index, str(folder / "docs.index"))
        documents = [
            {
                "id": f"{number}-{row}",
                "title": f"Title {row}",
                "path": f"docs/{row // 10}.md",
                "content": f"Passage {row} of dataset {number}. " * 25,
            }
            for row in range(ROWS)
        ]
        (folder / "metadata.json").write_text(json.dumps(documents), "utf-8")
        write_manifest(folder)


def write_manifest(folder: Path) -> None:
    manifest = {
        "id": folder.name,
        "name": folder.name,
        "description": "Made for a benchmark.",
        "index": "docs.index",
        "metadata": "metadata.json",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


class StdioClient:
    """Sends raw JSON lines; any number of threads may call."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._lock = threading.Lock()
        self._number = 100
        self._waiting: dict[int, tuple[threading.Event, list[Any]]] = {}
        self._send(INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        threading.Thread(target=self._read, daemon=True).start()

    def _send(self, message: Any) -> None:
        assert self.process.stdin
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        with self._lock:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") in self._waiting:
                event, found = self._waiting.pop(message["id"])
                found.append(message)
                event.set()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._number += 1
            number = self._number
        event, found = threading.Event(), list[Any]()
        self._waiting[number] = event, found
        params = {"name": tool, "arguments": arguments}
        self._send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        assert event.wait(120)
        result: dict[str, Any] = found[0]["result"]["structuredContent"]
        return result

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)


class HttpClient:
    """Calls the same over streamable HTTP, a request a call."""

    def __init__(self, port: int, token: str) -> None:
        self._url = f"http://127.0.0.1:{port}/mcp"
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._url, data, self._headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
            result: dict[str, Any] = json.load(response)["result"]["structuredContent"]
        return result


def times(call: Callable[..., dict[str, Any]], tool: str, calls: int, at_once: int) -> list[float]:
    """Return how long each search took, in milliseconds."""

    def one(number: int) -> float:
        began = time.perf_counter()
        arguments = {"dataset": f"set-{number % 5}", "query": QUERIES[number % len(QUERIES)]}
        assert len(call(tool, arguments)["results"]) == 5
        return (time.perf_counter() - began) * 1000

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(calls)))


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def host_command(root: Path, *more: str, with_plugin: bool = True) -> list[str]:
    pairs = {
        "state_dir": root.parent / "state",
        "server.stateless": "true",
        "server.json_response": "true",
        "plugins.knowledge.root": root,
        "plugins.knowledge.enabled": str(with_plugin).lower(),
    }
    options = [part for key, value in pairs.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "standards_mcp", *options, *more]


def ready(client: StdioClient) -> float:
    """Return after how many seconds all datasets are served."""
    began = time.perf_counter()
    while client.call("knowledge_listDatasets", {}).get("counts", {}).get("ready") != 5:
        time.sleep(0.02)
    return time.perf_counter() - began


def resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in children for child in file.read_text("utf-8").split()]


@contextmanager
def over_http(root: Path) -> Iterator[HttpClient]:
    command = host_command(root)
    created = subprocess.run(
        [*command, "auth", "token", "new", f"bench-{time.time_ns()}"],
        capture_output=True,
        text=True,
        check=True,
    )
    token = next(word for word in created.stdout.split() if len(word) > 30)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("serve", "--transport", "http", "--port", str(port))
    process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
    client = HttpClient(port, token)
    try:
        for _ in range(300):
            try:
                if client.call("knowledge_listDatasets", {})["counts"]["ready"] == 5:
                    break
            except (OSError, KeyError):
                pass
            time.sleep(0.1)
        yield client
    finally:
        process.terminate()
        process.wait(30)


def measure(root: Path, rounds: int, calls: int) -> None:
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        client = StdioClient(host_command(root, "serve"))
        ready(client)
        seconds.append(time.perf_counter() - began)
        client.close()
    print(f"  ready after {statistics.median(seconds):.1f} s (up to {max(seconds):.1f} s)")
    host = StdioClient(host_command(root, "serve"))
    ready(host)
    peer = StdioClient([sys.executable, "-c", PEER, str(root)])
    for at_once in (1, 10):
        found: list[tuple[float, float]] = []
        for each, tool in ((host, "knowledge_search"), (peer, "search")):
            times(each.call, tool, 30, at_once)
        for _ in range(rounds):
            ours = p95(times(host.call, "knowledge_search", calls, at_once))
            theirs = p95(times(peer.call, "search", calls, at_once))
            found.append((ours, theirs))
        medians = [statistics.median(each) for each in zip(*found, strict=True)]
        ratio = statistics.median(ours / theirs for ours, theirs in found)
        print(
            f"  {at_once:>2} at once over stdio: p95 {medians[0]:.0f} ms, "
            f"bare MCPServer {medians[1]:.0f} ms, ratio {ratio:.2f}"
        )
    sizes = [resident(pid) for pid in workers_of(host.process.pid)]
    with_plugin = resident(host.process.pid)
    host.close()
    peer.close()
    bare = StdioClient(host_command(root, "serve", with_plugin=False))
    bare.call("find_relevant_standards", {})  # refused; it has started then
    print(
        f"  memory: the host's process {with_plugin:.0f} MiB, {resident(bare.process.pid):.0f} "
        f"without the plugin; a worker {max(sizes):.0f} MiB"
    )
    bare.close()
    with over_http(root) as client:
        for at_once in (1, 10):
            times(client.call, "knowledge_search", 30, at_once)
            took = [
                p95(times(client.call, "knowledge_search", calls, at_once)) for _ in range(rounds)
            ]
            print(f"  {at_once:>2} at once over HTTP: p95 {statistics.median(took):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        root = Path(home) / "datasets"
        make_datasets(root)
        print("five datasets:")
        measure(root, options.rounds, options.calls)
        (root / "corrupt").mkdir()
        write_manifest(root / "corrupt")
        (root / "corrupt/docs.index").write_bytes(b"IxFI" + os.urandom(1_000_000))
        (root / "corrupt/metadata.json").write_text("[{}]", "utf-8")
        print("with a corrupt one beside them:")
        measure(root, options.rounds, options.calls)


if __name__ == "__main__":
    main()
