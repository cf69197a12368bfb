"""Web search: what the plugin adds to a provider's time, beside httpx2 asking it directly.

usage: .venv-dev/bin/python benchmarks/web.py [--calls 300]

A loopback provider answers at once with five results in the shape of Brave's. The server is a real
process over stdio, which asks it for each new question; the peer asks it by httpx2 alone. Kept
answers, and twenty equal questions at one time, do not reach the provider, or once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
from calls import Client

RESULTS = [
    {
        "title": f"Page <strong>{number}</strong>",
        "url": f"https://example.org/{number}",
        "description": "What <strong>this page</strong> is about, in a line or two. " * 4,
        "profile": {"name": "Example"},
        "product": {"offers": [{"price": "12.99", "priceCurrency": "USD"}]},
    }
    for number in range(5)
]
BODY = json.dumps({"type": "search", "web": {"results": RESULTS}}).encode()


class Provider(ThreadingHTTPServer):
    """Answers at once, and counts."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet
    server: Provider

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(200)
        self.send_header("content-length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)
        self.wfile.flush()

    def log_message(self, *_: object) -> None: ...


def timed(calls: int, call: Callable[[int], None]) -> list[float]:
    """Return the milliseconds of each of so many calls, one after the other."""
    times = list[float]()
    for number in range(calls):
        began = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - began) * 1000)
    return times


def shown(times: Sequence[float]) -> str:
    p95 = statistics.quantiles(times, n=20)[18]
    return f"p50 {statistics.median(times):5.2f} ms, p95 {p95:5.2f} ms"


def question(number: int, words: str = "question") -> dict[str, object]:
    params = {"name": "web_search", "arguments": {"query": f"{words} {number % 1000}"}}
    return {"jsonrpc": "2.0", "id": number + 10, "method": "tools/call", "params": params}


def measure(calls: int, folder: Path, provider: Provider) -> None:
    table = f'base_url = "{provider.url}"\nrate_limit = "999999/second"\ncache_size = 10000\n'
    (folder / "config.toml").write_text(f'state_dir = "{folder}/state"\n[plugins.web]\n{table}')
    command = [sys.executable, "-m", "standards_mcp", "--config", str(folder / "config.toml")]
    server = Client(command, {**os.environ, "SEARCH_API_KEY": "a-key-of-no-account"})
    http = httpx2.Client()

    def read() -> None:
        assert len(server.answer()["result"]["structuredContent"]["results"]) == len(RESULTS)

    def search(number: int) -> None:
        server.send(question(number))
        read()

    def ask(number: int) -> None:
        query = {"q": f"question {number}", "count": "5"}
        assert http.get(f"{provider.url}/res/v1/web/search", params=query).json()["web"]

    search(999)
    ask(999)
    peer, fresh = timed(calls, ask), timed(calls, search)
    before = provider.asked
    kept = timed(calls, search)
    assert provider.asked == before
    equal = [question(number * 1000, "equal") for number in range(20)]
    server.send(*equal)
    for _ in equal:
        read()
    print(f"httpx2 alone         {shown(peer)}")
    print(f"a fresh answer       {shown(fresh)}")
    share = statistics.median(fresh) - statistics.median(peer)
    print(f"the server's share   p50 {share:5.2f} ms")
    print(f"a kept answer        {shown(kept)}")
    print(f"20 equal questions   {provider.asked - before} request")
    server.close()
    http.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=300)
    given = parser.parse_args()
    provider = Provider()
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.calls, Path(folder), provider)


if __name__ == "__main__":
    main()
