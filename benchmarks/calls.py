"""Calls: tool calls a second over stdio, through the host and on a bare `MCPServer`.

usage: python benchmarks/calls.py [--rounds 5] [--calls 600]

Both serve the same async function; the client writes raw JSON lines, with 1 and with 10 calls in
flight. The two run in turn, and the median of the ratios is the figure to quote: over 1, the host
is faster.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from start import INITIALIZE

FUNCTION = """
async def add(a: int, b: int) -> {result}:
    "Add two numbers."
    return {{"sum": a + b}}
"""
TYPED = "\nfrom typing_extensions import TypedDict\n\nclass Sum(TypedDict):\n    sum: int\n"
PEER = (
    "from mcp.server.mcpserver import MCPServer\n"
    + TYPED
    + 'server = MCPServer("peer")\n@server.tool()'
    + FUNCTION.format(result="Sum")
    + '\nserver.run("stdio")\n'
)
PLUGIN = (
    "from standards_mcp import Plugin, Tool, hookimpl\n"
    + TYPED
    + FUNCTION.format(result="Sum")
    + """
class AddPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name="add", function=add)]
"""
)


class Client:
    """A client that keeps a number of calls in flight."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.send(INITIALIZE)
        self.process.stdout.readline()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, *messages: dict[str, object]) -> None:
        self.process.stdin.write(b"".join(json.dumps(item).encode() + b"\n" for item in messages))
        self.process.stdin.flush()

    def calls_a_second(self, calls: int, in_flight: int, tool: str = "add") -> float:
        began = time.perf_counter()
        messages = (call(tool, number) for number in range(10, calls + 10))
        self.send(*(next(messages) for _ in range(in_flight)))
        for _ in range(calls):
            answer = self.answer()
            assert answer["result"]["structuredContent"]["sum"] == answer["id"] + 1, answer
            if message := next(messages, None):
                self.send(message)
        return calls / (time.perf_counter() - began)

    def answer(self) -> dict[str, Any]:
        while "id" not in (message := json.loads(self.process.stdout.readline())):
            pass  # a notification
        return message

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def call(tool: str, number: int) -> dict[str, object]:
    params = {"name": tool, "arguments": {"a": number, "b": 1}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def install_distribution(site: Path, source: str) -> None:
    """Write a distribution with a plugin's source."""
    (site / "benchmark_add.py").write_text(source)
    info = site / "benchmark_add-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: benchmark-add\nVersion: 1.0\n")
    entry = "[standards_mcp.plugins]\nadd = benchmark_add:AddPlugin\n"
    (info / "entry_points.txt").write_text(entry)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=600)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        install_distribution(Path(home), PLUGIN)
        environment = {**os.environ, "HOME": home, "PYTHONPATH": home, "XDG_STATE_HOME": home}
        host = Client([sys.executable, "-m", "standards_mcp"], environment)
        peer = Client([sys.executable, "-c", PEER], environment)
        for client in (host, peer):
            client.calls_a_second(arguments.calls, 1)
        for in_flight in (1, 10):
            rates = [
                [client.calls_a_second(arguments.calls, in_flight) for client in (host, peer)]
                for _ in range(arguments.rounds)
            ]
            ours, theirs = (statistics.median(rate[index] for rate in rates) for index in (0, 1))
            ratio = statistics.median(rate[0] / rate[1] for rate in rates)
            print(f"{in_flight:>2} in flight: standards-mcp {ours:.0f} calls/s,", end=" ")
            print(f"bare MCPServer {theirs:.0f} calls/s, ratio {ratio:.2f}")
        host.close()
        peer.close()


if __name__ == "__main__":
    main()
