"""Calls: tool calls a second over stdio, through the host, a bare `MCPServer` and FastMCP.

usage: python benchmarks/calls.py [--rounds 5] [--calls 600] [--fastmcp PYTHON] [--before PYTHON]

All serve the same async function; the client writes raw JSON lines, with 1 and with 10 calls in
flight. The servers run in turn, and the median of the ratios is the figure to quote: over 1, the
host is faster. The ratio of processor times holds on a busy machine, too; rates do not.
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
FASTMCP = PEER.replace("from mcp.server.mcpserver import MCPServer", "from fastmcp import FastMCP")
FASTMCP = FASTMCP.replace("MCPServer(", "FastMCP(").replace(
    'run("stdio")', "run(show_banner=False)"
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
            cwd=environment["HOME"],  # where no other version can be imported
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

    def processor_seconds(self) -> float:
        """Return the processor time of the process so far, which Linux tells."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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


def install_distribution(site: Path, source: str, name: str = "add") -> None:
    """Write a distribution with a plugin's source, whose class is named after the plugin."""
    (site / f"benchmark_{name}.py").write_text(source)
    info = site / f"benchmark_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: benchmark-{name}\nVersion: 1.0\n")
    entry = f"[standards_mcp.plugins]\n{name} = benchmark_{name}:{name.title()}Plugin\n"
    (info / "entry_points.txt").write_text(entry)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--fastmcp", help="the Python of an environment with FastMCP")
    parser.add_argument("--before", help="the Python of an environment with another version")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        install_distribution(Path(home), PLUGIN)
        environment = {**os.environ, "HOME": home, "PYTHONPATH": home, "XDG_STATE_HOME": home}
        commands = {
            "standards-mcp": [sys.executable, "-m", "standards_mcp"],
            "bare MCPServer": [sys.executable, "-c", PEER],
        }
        if arguments.fastmcp:
            commands["FastMCP"] = [arguments.fastmcp, "-c", FASTMCP]
        if arguments.before:
            commands["before"] = [arguments.before, "-m", "standards_mcp"]
        clients = {name: Client(command, environment) for name, command in commands.items()}
        for client in clients.values():
            client.calls_a_second(arguments.calls, 1)
        for in_flight in (1, 10):
            print(f"{in_flight} in flight:")
            compare(clients, arguments.calls, in_flight, arguments.rounds)
        for client in clients.values():
            client.close()


def compare(clients: dict[str, Client], calls: int, in_flight: int, rounds: int) -> None:
    """Print the rate and the processor time of each server, and the ratios to the first."""
    rates: list[dict[str, float]] = []
    costs: list[dict[str, float]] = []
    for _ in range(rounds):
        began = {name: client.processor_seconds() for name, client in clients.items()}
        rates.append({n: client.calls_a_second(calls, in_flight) for n, client in clients.items()})
        costs.append({n: c.processor_seconds() - began[n] for n, c in clients.items()})
    host = next(iter(clients))
    for name in clients:
        rate = statistics.median(row[name] for row in rates)
        cost = statistics.median(row[name] for row in costs) / calls * 1000
        faster = statistics.median(row[host] / row[name] for row in rates)
        cheaper = sum(row[name] for row in costs) / sum(row[host] for row in costs)
        print(f"  {name}: {rate:.0f} calls/s, {cost:.2f} ms of processor time each;", end=" ")
        print(f"the host is {faster:.2f} times as fast, {cheaper:.2f} by processor time")


if __name__ == "__main__":
    main()
