"""Three tools over Redis and an HTTP API, as in TM Dev Lab's benchmark v2 of MCP servers.

    python benchmarks/three_tools.py [--fastmcp PYTHON] [--workers 1 4] [--rounds 3]

50 users repeat four sessions without a pause: `search_products`, `get_user_cart`, `checkout` and
the list of tools. A session of 2025-11-25 has `initialize`, the notification after it, and the
request; 2026-07-28 has no sessions, so there it is the request alone. After four sessions a user
waits 50 ms. The servers answer in JSON and keep no state. They serve the same functions
(`_shop_tools.py`): as a plugin of this host, on a bare `MCPServer` and on FastMCP.

The servers get the load in turn, each after a new seed of Redis and a warm-up. The figures are
those of TM Dev Lab: requests a second (`initialize`, `tools/call` and `tools/list`), and how long a
`tools/call` takes. Every answer is compared with the right one; any other counts as an error.
Memory is RSS, which counts what workers share for each of them, and PSS, which counts it once.

The load generator, Redis and the mock API use the same processors as the server, so quote ratios,
and by processor time if the machine is busy. It needs Linux, `redis-server`, and the packages
`httpx2` and `redis` in both environments.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _shop_backends as shop
from _http_clients import NEW, OLD, Client, Load
from _http_servers import Served, free_port, running, without_plugins
from calls import install_distribution
from redis import Redis

PLUGIN = """
from _shop_tools import TOOLS
from standards_mcp import Plugin, Tool, hookimpl

class ShopPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name=function.__name__, function=function) for function in TOOLS]
"""
BARE = """
from _shop_tools import TOOLS
from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", log_level="ERROR")
for function in TOOLS:
    server.add_tool(function)
app = server.streamable_http_app(json_response=True, stateless_http=True)
"""
FASTMCP = """
from _shop_tools import TOOLS
from fastmcp import FastMCP

server = FastMCP("shop")
for function in TOOLS:
    server.tool(function)
app = server.http_app(json_response=True, stateless_http=True)
"""
PAUSE = 0.05
ABOUT = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
COLUMNS = (
    "server",
    "requests/s",
    "tool calls/s",
    "p50",
    "p95",
    "errors",
    "RSS, PSS",
    "processor time of a request",
    "host is faster by rate",
    "by processor time",
)
HOST, PEER = "standards-mcp", "bare MCPServer"


@dataclass
class Turn(Load):
    """What the users found while one server had the load; the latencies are of tool calls.

    Attributes:
        requests: Number of answered requests, without notifications.
        errors: Number of answers that were wrong or none.
        rss: Resident memory of all processes, in bytes.
        pss: The same, with shared pages counted once.
    """

    requests: int = 0
    errors: int = 0
    rss: int = 0
    pss: int = 0

    @property
    def request_rate(self) -> float:
        return self.requests / self.seconds

    @property
    def of_a_request(self) -> float:
        """The processor time of a request, in milliseconds."""
        return self.processor / self.requests * 1000


class User:
    """A virtual user with one connection, and a cart and orders of their own."""

    def __init__(self, served: Served, version: str, number: int) -> None:
        self._client, self._number = Client(served, version), number
        self._checkouts = 0
        buyer = shop.user_id(number)
        cart = shop.cart_of(number)
        products = shop.search(**shop.QUERY)
        fields = ("id", "sku", "name", "price", "rating")
        top_ids = shop.most_popular()
        self._results: dict[str, dict[str, Any]] = {
            "search_products": {
                "total": products["total"],
                "products": [
                    {key: product[key] for key in fields} | {"popularity_rank": 0}
                    for product in products["products"]
                ],
                "most_popular_ids": top_ids,
            },
            "get_user_cart": {
                "user_id": buyer,
                "items": cart,
                "first_product": shop.catalogue()[cart[0]["product_id"] - 1]["name"],
                "orders": shop.orders_of(number)[:5],
            },
            "checkout": {
                "status": "confirmed",
                "total": shop.price_of(shop.BOUGHT),
                "items": len(shop.BOUGHT),
            },
        }
        self._arguments: dict[str, Mapping[str, Any]] = {
            "search_products": shop.QUERY,
            "get_user_cart": {"user_id": buyer},
            "checkout": {"user_id": buyer, "items": shop.BOUGHT},
        }

    async def keep_shopping(self, turn: Turn, begin: float, end: float) -> None:
        """Repeat the four sessions until *end*, and count from *begin* on."""
        await self._client.connect()
        while time.perf_counter() < end:
            for tool in (*self._arguments, ""):
                is_right = True
                if self._client.version == OLD:
                    is_right = await self._initialize()
                start = time.perf_counter()
                is_right &= await (self._call(tool) if tool else self._list())
                now = time.perf_counter()
                if begin <= now <= end:
                    turn.requests += 2 if self._client.version == OLD else 1
                    turn.errors += not is_right
                    turn.latencies += [now - start] if tool else []
            await asyncio.sleep(PAUSE)
        self._client.close()

    async def _initialize(self) -> bool:
        result = await self._result("initialize", ABOUT)
        await self._client.exchange("notifications/initialized", {})
        return bool(result.get("protocolVersion") == OLD)

    async def _call(self, tool: str) -> bool:
        params = {"name": tool, "arguments": self._arguments[tool]}
        result = await self._result("tools/call", params)
        expected = self._results[tool]
        if tool == "checkout":
            # A checkout that Redis has lost or has twice breaks the count.
            self._checkouts += 1
            expected = {**expected, "checkouts": self._checkouts}
        try:
            answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        except (ValueError, LookupError):
            return False
        return answer == expected

    async def _list(self) -> bool:
        result = await self._result("tools/list", {})
        return {tool["name"] for tool in result.get("tools", [])} == set(self._arguments)

    async def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a request, or an empty one if the answer is an error."""
        _, body = await self._client.exchange(method, params)
        try:
            result: dict[str, Any] = json.loads(body)["result"]
        except (ValueError, LookupError):
            return {}
        return result


async def load(served: Served, version: str, given: argparse.Namespace) -> Turn:
    """Let all users shop at one server, and measure it after the warm-up."""
    turn = Turn(given.seconds)
    users = [User(served, version, number) for number in range(1, given.users + 1)]
    begin = time.perf_counter() + given.warm_up
    end = begin + given.seconds

    async def measure() -> None:
        await asyncio.sleep(begin - time.perf_counter())
        before = served.processor
        await asyncio.sleep(end - time.perf_counter())
        turn.processor = served.processor - before
        turn.rss, turn.pss = served.memory, served.proportional_memory

    await asyncio.gather(measure(), *(user.keep_shopping(turn, begin, end) for user in users))
    if not turn.latencies:
        raise SystemExit("a server finished no call in its turn: give it more --seconds")
    return turn


@contextmanager
def host(folder: Path, workers: int, environment: Mapping[str, str]) -> Generator[Served]:
    """Serve the tools as the only plugin of this host, with its defaults."""
    _prepare(folder)
    install_distribution(folder, PLUGIN, "shop")
    config = folder / "config.toml"
    config.write_text(f'state_dir = "{folder.as_posix()}/state"\n{without_plugins()}')
    port = free_port()
    command = [sys.executable, "-m", "standards_mcp", "--config", str(config), "serve"]
    command += ["--transport", "http", "--port", str(port), "--workers", str(workers)]
    command += ["--stateless", "--json-response"]
    found = {**environment, "PYTHONPATH": str(folder), "HOME": str(folder)}
    with running(command, found, port) as process:
        yield Served(process, port)


@contextmanager
def peer(
    folder: Path, workers: int, environment: Mapping[str, str], python: str, source: str
) -> Generator[Served]:
    """Serve the tools on another server, by uvicorn with the same loop and parser as the host."""
    _prepare(folder)
    (folder / "peer.py").write_text(source)
    port = free_port()
    command = [python, "-m", "uvicorn", "peer:app", "--port", str(port), "--log-level", "error"]
    command += ["--workers", str(workers), "--loop", "asyncio", "--http", "h11"]
    with running(command, {**environment, "PYTHONPATH": str(folder)}, port) as process:
        yield Served(process, port)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("_shop_tools.py"), folder)


def compare(
    given: argparse.Namespace, workers: int, folder: Path, redis_port: int, api: int
) -> None:
    """Give all servers with so many workers the load in turn, and print a table."""
    environment = {
        **os.environ,
        "API": f"http://127.0.0.1:{api}",
        "REDIS": f"127.0.0.1:{redis_port}",
    }
    options = (workers, environment)
    with ExitStack() as running_servers, Redis(port=redis_port) as redis:
        servers = {
            HOST: host(folder / "host", *options),
            PEER: peer(folder / "peer", *options, sys.executable, BARE),
        }
        if given.fastmcp:
            name = f"FastMCP {_version_of_fastmcp(given.fastmcp)}"
            servers[name] = peer(folder / "fastmcp", *options, given.fastmcp, FASTMCP)
        served = {name: running_servers.enter_context(server) for name, server in servers.items()}
        for version in given.versions:
            turns: dict[str, list[Turn]] = {name: [] for name in served}
            for number in range(given.rounds):
                first = number % len(served)  # so that no server is always the first
                for name in [*list(served)[first:], *list(served)[:first]]:
                    shop.seed(redis)
                    turns[name].append(asyncio.run(load(served[name], version, given)))
            _print(workers, version, turns)


def _version_of_fastmcp(python: str) -> str:
    code = "from importlib.metadata import version; print(version('fastmcp'))"
    made = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return made.stdout.strip()


def _print(workers: int, version: str, turns: Mapping[str, list[Turn]]) -> None:
    print(f"\n{version}, workers: {workers}\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for name, of_server in turns.items():
        middle = sorted(of_server, key=lambda turn: turn.request_rate)[len(of_server) // 2]
        pairs = list(zip(turns[HOST], of_server, strict=True))
        rate = statistics.median(host.request_rate / turn.request_rate for host, turn in pairs)
        cost = statistics.median(turn.of_a_request / host.of_a_request for host, turn in pairs)
        cells = [
            name,
            f"{middle.request_rate:.0f}",
            f"{middle.rate:.0f}",
            *(f"{middle.percentile(percent):.0f} ms" for percent in (50, 95)),
            str(sum(turn.errors for turn in of_server)),
            f"{middle.rss / 2**20:.0f}, {middle.pss / 2**20:.0f} MiB",
            f"{middle.of_a_request:.2f} ms",
            f"{rate:.2f}",
            f"{cost:.2f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fastmcp", help="the Python of an environment with fastmcp and redis")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--versions", nargs="+", choices=[OLD, NEW], default=[OLD, NEW])
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=float, default=5, help="seconds")
    parser.add_argument("--seconds", type=float, default=20, help="seconds of a turn after that")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as backends:
        folder = Path(name)
        redis = backends.enter_context(shop.redis_server(folder))
        api = backends.enter_context(shop.api_server())
        for workers in given.workers:
            compare(given, workers, folder / str(workers), redis, api)


if __name__ == "__main__":
    main()
