"""The service over HTTP under load, with a token, limits, metrics and the audit log on.

    python benchmarks/http_load.py calls [--modes json stateless stateful] [--clients 1 10 100 500]
        [--fastmcp PYTHON]
    python benchmarks/http_load.py memory [--calls 100000] [--sessions 10000]
    python benchmarks/http_load.py slow
    python benchmarks/http_load.py search --index DIR --queries Q.jsonl.gz [--corpus C.jsonl.gz]

`calls` compares with a bare `MCPServer` that has the same async function and nothing else, and with
one that does the same duties in the least code. They serve in turn, and the median of the ratios is
the figure to quote: over 1, the host is faster. The ratio of processor times holds on a busy
machine, too; rates and latencies do not. All of it needs Linux; `--quick` is for a short look.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _http_clients import NEW, OLD, Client, half_open, load, slow_reader
from _http_servers import MODES, Served, host, peer
from search import _import, _lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--clients", type=int, nargs="+")
    parser.add_argument("--fastmcp", help="the Python of an environment with FastMCP")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--index", type=Path, help="the folder of a catalog")
    parser.add_argument("--corpus", type=Path, help="what it is made of where there is none")
    parser.add_argument("--queries", type=Path)
    given = parser.parse_args()
    short = {"clients": [1, 10], "rounds": 1, "seconds": 1.0, "calls": 2000, "sessions": 200}
    whole = {
        "clients": [1, 10, 100, 500],
        "rounds": 3,
        "seconds": 3.0,
        "calls": 100_000,
        "sessions": 10_000,
    }
    for name, value in (short if given.quick else whole).items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    with tempfile.TemporaryDirectory() as folder:
        PARTS[given.part](given, Path(folder))


def calls(given: argparse.Namespace, folder: Path) -> None:
    """Compare calls by mode, number of workers, generation of the clients, and their number."""
    for mode in given.modes:
        for workers in given.workers:
            if mode == "stateful" and workers > 1:
                continue  # a session lives in one process
            name = f"{mode}, {workers} worker{'s' * (workers > 1)}"
            place = folder / f"{mode}{workers}"
            with ExitStack() as running:
                servers = {
                    "standards-mcp": host(place / "host", mode, workers=workers),
                    "bare MCPServer": peer(place / "peer", mode, workers=workers),
                    "with duties": peer(place / "duties", mode, workers=workers, duties=True),
                }
                if path := given.fastmcp:
                    options = {"workers": workers, "fastmcp": path}
                    servers["FastMCP"] = peer(place / "fastmcp", mode, **options)
                served = {name: running.enter_context(each) for name, each in servers.items()}
                for version in [OLD] if mode == "stateful" else [OLD, NEW]:
                    for clients in given.clients:
                        print(f"{name}, {version}, {clients} clients")
                        options = {"version": version, "sessions": mode == "stateful"}
                        _compare(given, clients, served, options)


def _compare(
    given: argparse.Namespace, clients: int, servers: Mapping[str, Served], options: dict[str, Any]
) -> None:
    rounds = [
        [asyncio.run(load(each, clients, given.seconds, **options)) for each in servers.values()]
        for _ in range(given.rounds)
    ]
    for index, name in enumerate(servers):
        found = sorted((each[index] for each in rounds), key=lambda each: each.of_a_call)
        processor = statistics.median(each[index].of_a_call / each[0].of_a_call for each in rounds)
        rate = statistics.median(each[0].rate / each[index].rate for each in rounds)
        ratios = f"; ratio by processor time {processor:.2f}, by rate {rate:.2f}" if index else ""
        print(f"  {name:15} {found[len(found) // 2]}{ratios}", flush=True)


def memory(given: argparse.Namespace, folder: Path) -> None:
    """Tell how the memory grows with calls, and with sessions that are opened and left."""
    with host(folder / "calls") as served:
        _grow("call", given.calls, served, _call_many)
    with host(folder / "sessions", "stateful", session_idle=2) as served:
        _grow("session", given.sessions, served, _open_many)


def _grow(what: str, count: int, served: Served, work: Any) -> None:
    step = count // 20
    points: list[tuple[int, int]] = []
    for number in range(21):
        asyncio.run(work(served, step))
        points.append((number * step, served.memory))
    first, last = points[0][1] / 2**20, points[-1][1] / 2**20
    later = points[10:]  # allocators and caches have grown by then
    slope = statistics.linear_regression(*zip(*points, strict=True)).slope
    end = statistics.linear_regression(*zip(*later, strict=True)).slope
    print(f"{count} {what}s after {step}: {first:.1f} to {last:.1f} MiB; ", end="")
    print(f"{slope:.1f} bytes a {what}, {end:.1f} in the second half", flush=True)


async def _call_many(served: Served, count: int) -> None:
    async def some(client: Client) -> None:
        await client.connect()
        for _ in range(count // 10):
            await client.call("add", {"a": 2, "b": 3}, b'"sum":5')
        client.close()

    await asyncio.gather(*(some(Client(served, NEW)) for _ in range(10)))


async def _open_many(served: Served, count: int) -> None:
    async def some() -> None:
        for _ in range(count // 10):
            client = Client(served)
            await client.connect()
            await client.open_session()
            client.close()

    await asyncio.gather(*(some() for _ in range(10)))
    await asyncio.sleep(3)  # until those that were left are closed


def slow(given: argparse.Namespace, folder: Path) -> None:
    """Tell what ten clients notice of 200 that do not read, and of 200 that stop half way."""
    with host(folder / "host", "stateless") as served, ExitStack() as held:

        def show(name: str) -> None:
            found = asyncio.run(load(served, 10, given.seconds))
            print(f"{name:24} {found}; {served.memory / 2**20:.0f} MiB", flush=True)

        show("alone")
        for _ in range(200):
            held.enter_context(slow_reader(served))
        _wait_idle(served)
        show("beside slow readers")
        for number in range(200):
            held.enter_context(half_open(served, number))
        show("and half-open ones")
        held.close()
        _wait_idle(served)
        show("after them")


def _wait_idle(served: Served) -> None:
    """Wait until the answers that nobody reads have been made."""
    before = -1.0
    while (now := served.processor) > before + 0.05:
        before = now
        time.sleep(0.5)


def search(given: argparse.Namespace, folder: Path) -> None:
    """Search with many clients, and tell how busy that keeps the machine."""
    if not (given.index and given.queries):
        raise SystemExit("--index and --queries are needed")
    if not given.index.exists():
        if not given.corpus:
            raise SystemExit(f"{given.index} does not exist: add --corpus")
        _import(given.index, given.corpus)
    texts = [each["text"] for each in _lines(given.queries)]

    def ask(number: int) -> tuple[str, Mapping[str, Any], bytes]:
        return (
            "find_relevant_standards",
            {"activity": texts[number % len(texts)]},
            b'"success":true',
        )

    with host(folder / "host", settings={"plugins.catalog.path": given.index}) as served:
        for clients in _first_warm(served, given.clients, ask):
            found = asyncio.run(load(served, clients, given.seconds, NEW, call=ask))
            busy = found.processor / found.seconds
            print(f"{clients} clients: {found}; {busy:.2f} processors busy", flush=True)


def _first_warm(served: Served, clients: list[int], ask: Any) -> Iterator[int]:
    asyncio.run(load(served, 1, 1.0, NEW, call=ask))
    yield from clients


PARTS = {"calls": calls, "memory": memory, "slow": slow, "search": search}


if __name__ == "__main__":
    main()
