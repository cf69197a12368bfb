"""Start: from spawning the process to the answer to tools/list, over stdio.

usage: python benchmarks/start.py [--pairs 10]

The peer is a bare `MCPServer` of the same SDK with two tools of the same signatures. The two run in
turn, pair by pair, with compiled bytecode; the median of the ratios is the figure to quote.
"""

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

PEER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")

@server.tool()
def find(activity: str, max_results: int = 5, grade: str | None = None) -> dict[str, str]:
    "Find."
    return {}

@server.tool()
def details(standard_id: str) -> dict[str, str]:
    "Details."
    return {}

server.run("stdio")
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    pairs = parser.parse_args().pairs
    compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=0)
    compileall.compile_dir(Path(__file__).parent.parent, quiet=2)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["STANDARDS_MCP_TRUSTED"] = '["standards-mcp"]'  # no other plugin's imports
        commands = ([sys.executable, "-m", "standards_mcp"], [sys.executable, "-c", PEER])
        for command in commands:
            seconds(command, environment)
        runs = [[seconds(command, environment) for command in commands] for _ in range(pairs)]
    host, peer = (sorted(run[index] for run in runs) for index in (0, 1))
    ratios = sorted(run[0] / run[1] for run in runs)
    for name, times in (("standards-mcp", host), ("bare MCPServer", peer)):
        print(f"{name:<16} median {statistics.median(times) * 1000:5.0f} ms", end="  ")
        print(f"({times[0] * 1000:.0f} to {times[-1] * 1000:.0f})")
    middle = statistics.median(ratios)
    print(f"ratio            median {middle:.3f}  ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the time from the spawn to the complete answer to tools/list."""
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        for message in (
            INITIALIZE,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            LIST,
        ):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        tools = json.loads(process.stdout.readline())["result"]["tools"]
        elapsed = time.perf_counter() - began
        process.stdin.close()
        assert len(tools) == 2, tools
    return elapsed


if __name__ == "__main__":
    main()
