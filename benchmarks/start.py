"""Start: from spawning the process to first answers over stdio, and the time of two commands.

usage: python benchmarks/start.py [--pairs 10] [--before PYTHON] [--fastmcp PYTHON]

The host answers the list of tools from the snapshot of its last start, or without one. The peers
are a bare `MCPServer` of the same SDK and FastMCP, with two tools of the same signatures, and
another version of the host, each with the Python of its environment. All run in turn, with compiled
bytecode; the median of the ratios is the figure to quote. On Linux it also prints the time that
the process used the processors until then, which says more than the clock on a busy machine.
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
from functools import partial
from pathlib import Path

PEER = """
{imported}

server = {server}("peer")

@server.tool()
def find(activity: str, max_results: int = 5, grade: str | None = None) -> dict[str, str]:
    "Find."
    return {{}}

@server.tool()
def details(standard_id: str) -> dict[str, str]:
    "Details."
    return {{}}

server.run({run})
"""
BARE = PEER.format(
    imported="from mcp.server.mcpserver import MCPServer", server="MCPServer", run="'stdio'"
)
FASTMCP = PEER.format(
    imported="from fastmcp import FastMCP", server="FastMCP", run="show_banner=False"
)
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

MEASURES = ["list of tools", "answer of a tool"]
if sys.platform == "linux":
    MEASURES += [f"processor, {measure}" for measure in MEASURES]
CALLS = {
    "find_relevant_standards": {"activity": "students compare fractions"},
    "get_standard_details": {"standard_id": "3.NF.A.1"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--before", help="the Python of an environment with another version")
    parser.add_argument("--fastmcp", help="the Python of an environment with FastMCP")
    arguments = parser.parse_args()
    compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=0)
    compileall.compile_dir(Path(__file__).parent.parent, quiet=2)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        host = [sys.executable, "-m", "standards_mcp"]
        find, details = CALLS
        runs = {
            "with a snapshot": partial(first_answers, host, details, environment),
            "with a snapshot, search": partial(first_answers, host, find, environment),
            "without": partial(
                first_answers, [*host, "--set", "server.snapshot=false"], details, environment
            ),
            "bare MCPServer": partial(
                first_answers, [sys.executable, "-c", BARE], "details", environment
            ),
        }
        commands = {"--version": ["--version"], "search": ["search", "compare fractions"]}
        timed = {"host": host}
        if arguments.fastmcp:
            fastmcp = [arguments.fastmcp, "-c", FASTMCP]
            runs["FastMCP"] = partial(first_answers, fastmcp, "details", environment)
        if arguments.before:
            timed["before"] = [arguments.before, "-m", "standards_mcp"]
            # Another version has an index of its own.
            of_before = {**environment, "XDG_DATA_HOME": f"{home}/before"}
            runs["before"] = partial(first_answers, timed["before"], details, of_before)
            runs["before, search"] = partial(first_answers, timed["before"], find, of_before)
        for run in runs.values():
            run(stay=2)  # the catalog is filled, and the snapshot is stored
        rounds = [{name: run() for name, run in runs.items()} for _ in range(arguments.pairs)]
        for which, measure in enumerate(MEASURES):
            for name in runs:
                show(name, rounds, which, measure)
        for name, options in commands.items():
            if arguments.before:
                compare(name, timed, options, environment, arguments.pairs)


def show(name: str, rounds: list[dict[str, tuple[float, ...]]], which: int, what: str) -> None:
    times = sorted(run[name][which] for run in rounds)
    ratio = statistics.median(run[name][which] / run["bare MCPServer"][which] for run in rounds)
    print(
        f"{what:<27} {name:<24} median {statistics.median(times) * 1000:5.0f} ms"
        f" ({times[0] * 1000:.0f} to {times[-1] * 1000:.0f}), {ratio:.3f} of a bare server"
    )


def compare(
    name: str, timed: dict[str, list[str]], options: list[str], environment: dict[str, str], n: int
) -> None:
    """Print the time of a command as a ratio to another version."""

    def seconds(who: str, command: list[str]) -> float:
        data = environment["HOME"] + ("/before" if who == "before" else "")
        began = time.perf_counter()
        subprocess.run(
            [*command, *options],
            env={**environment, "XDG_DATA_HOME": data},
            cwd=environment["HOME"],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - began

    rounds = [{who: seconds(who, command) for who, command in timed.items()} for _ in range(n + 2)][
        2:
    ]
    ratio = statistics.median(run["host"] / run["before"] for run in rounds)
    took = statistics.median(run["host"] for run in rounds)
    print(f"{name:<17} median {took * 1000:.0f} ms, {ratio:.3f} of before")


def first_answers(
    command: list[str], tool: str, environment: dict[str, str], stay: float = 0
) -> tuple[float, ...]:
    """Return the seconds from the spawn to the list of tools, and to the answer of a tool.

    On Linux, the seconds of processor time follow.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=environment["HOME"],  # where no other version can be imported
    ) as process:

        def send(*messages: dict[str, object]) -> None:
            process.stdin.writelines(json.dumps(message).encode() + b"\n" for message in messages)
            process.stdin.flush()

        def answer(number: int) -> dict[str, object]:
            while (message := json.loads(process.stdout.readline())).get("id") != number:
                pass
            return message["result"]

        send(INITIALIZE)
        answer(1)
        send({"jsonrpc": "2.0", "method": "notifications/initialized"}, LIST)
        tools = answer(2)["tools"]
        listed, processor_listed = time.perf_counter() - began, processor_seconds(process.pid)
        assert len(tools) >= 2, tools
        params = {"name": tool, "arguments": CALLS.get(tool, {"standard_id": "3.NF.A.1"})}
        send({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})
        answer(3)
        answered, processor_answered = time.perf_counter() - began, processor_seconds(process.pid)
        time.sleep(stay)
        process.stdin.close()
    return listed, answered, processor_listed, processor_answered


def processor_seconds(process: int) -> float:
    """Return the processor time of all threads of a process so far; 0 where it is not known."""
    # The clock of another process, as in clock_getcpuclockid(3), which Python does not have.
    return time.clock_gettime(~process << 3 | 2) if sys.platform == "linux" else 0


if __name__ == "__main__":
    main()
