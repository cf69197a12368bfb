"""Start: from spawning the process to the answer to tools/list, over stdio.

usage: python benchmarks/start.py [--pairs 10] [--before PYTHON]

The peers are a bare `MCPServer` of the same SDK with two tools of the same signatures, and another
version of the host, with the Python of its environment. They run in turn, with compiled bytecode;
the median of the ratios is the figure to quote.
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
    parser.add_argument("--before", help="the Python of an environment with another version")
    arguments = parser.parse_args()
    compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=0)
    compileall.compile_dir(Path(__file__).parent.parent, quiet=2)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["STANDARDS_MCP_TRUSTED"] = '["standards-mcp"]'  # no other plugin's imports
        commands = {
            "standards-mcp": [sys.executable, "-m", "standards_mcp"],
            "bare MCPServer": [sys.executable, "-c", PEER],
        }
        if arguments.before:
            commands["before"] = [arguments.before, "-m", "standards_mcp"]
        for command in commands.values():
            seconds(command, environment)
        runs = [
            {name: seconds(command, environment) for name, command in commands.items()}
            for _ in range(arguments.pairs)
        ]
    for name in commands:
        times = sorted(run[name] for run in runs)
        ratio = statistics.median(run["standards-mcp"] / run[name] for run in runs)
        print(f"{name:<16} median {statistics.median(times) * 1000:5.0f} ms", end="  ")
        print(
            f"({times[0] * 1000:.0f} to {times[-1] * 1000:.0f}); the host takes {ratio:.3f} of it"
        )


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the time from the spawn to the complete answer to tools/list."""
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=environment["HOME"],  # where no other version can be imported
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
