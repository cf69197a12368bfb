"""Policy: what an admin's limits cost a call.

usage: python benchmarks/policy.py [--rounds 120] [--calls 50]

One plugin declares the same async function under several names, and the configuration sets limits
on all but `bare`. They are called in turn: over stdio by raw JSON lines, one and ten in flight, and
in process, beside the function itself. No limit is ever reached, so that every call runs; only
`cached` answers from the cache, which it filled in a first round. The figure to quote is the median
over the rounds of the time of a call as a ratio to that of `bare` in the same round. Rounds are
short and many, so that what else the machine does falls on all of them alike.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from calls import FUNCTION, TYPED, Client, install_distribution

TOOLS = {
    "bare": "no limits of its own",
    "places": "concurrency, output cap",
    "limited": "concurrency, output cap, rate limit",
    "missed": "cache, no answer kept",
    "cached": "cache, answer kept",
}
LIMITED = 1.10
PLUGIN = (
    "from standards_mcp import Plugin, Tool, hookimpl\n"
    + TYPED
    + FUNCTION.format(result="Sum")
    + f"""
class AddPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name=name, function=add, read_only=True) for name in {list(TOOLS)}]
"""
)
CONFIG = """
[tools.overrides.places]
concurrency = 12
max_output_tokens = 5000

[tools.overrides.limited]
rate_limit = "100000/minute"
concurrency = 12
max_output_tokens = 5000

[tools.overrides.missed]
cache_ttl = 0.001

[tools.overrides.cached]
cache_ttl = 3600
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--calls", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        install_distribution(Path(home), PLUGIN)
        config = Path(home) / "limits.toml"
        config.write_text(CONFIG)
        slowest = max(over_stdio(home, config, arguments.rounds, arguments.calls))
        sys.path.insert(0, home)
        asyncio.run(in_process(config, arguments.rounds, arguments.calls))
    print(f"limits over stdio: {slowest:.2f} of the bare call, at most {LIMITED:.2f} is asked for")
    return slowest > LIMITED


def over_stdio(home: str, config: Path, rounds: int, calls: int) -> list[float]:
    """Print the cost of each tool, and return the ratios of `limited`."""
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "HOME": home, "PYTHONPATH": path, "XDG_STATE_HOME": home}
    client = Client([sys.executable, "-m", "standards_mcp", "--config", str(config)], environment)
    ratios: list[float] = []
    for in_flight in (1, 10):
        timed = in_turn(
            {
                tool: lambda tool=tool: 1 / client.calls_a_second(calls, in_flight, tool)  # noqa: B023
                for tool in TOOLS
            },
            rounds,
        )
        ratios.append(report(f"over stdio, {in_flight} in flight", timed)["limited"])
    client.close()
    return ratios


async def in_process(config: Path, rounds: int, calls: int) -> None:
    """Print the cost of each tool, and of the function itself, without a client."""
    from benchmark_add import add

    from standards_mcp.config.loading import load_settings
    from standards_mcp.host import Host

    host = Host(load_settings(config))
    host.load()
    timed: dict[str, list[float]] = {"function": []} | {tool: [] for tool in TOOLS}
    async with host.running():
        for _ in range(rounds + 1):
            for tool, seconds in timed.items():
                began = time.perf_counter()
                for number in range(calls):
                    if tool == "function":
                        await add(number, 1)
                    else:
                        await host.call_tool(tool, {"a": number, "b": 1})
                seconds.append((time.perf_counter() - began) / calls)
    report("in process", {tool: seconds[1:] for tool, seconds in timed.items()})


def in_turn(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a call that each measure gives, after one round that is not counted."""
    timed: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name, measure in measures.items():
            seconds = measure()
            if number:
                timed[name].append(seconds)
    return timed


def report(where: str, timed: Mapping[str, Sequence[float]]) -> dict[str, float]:
    ratios: dict[str, float] = {}
    print(where)
    for name, seconds in timed.items():
        pairs = [own / bare for own, bare in zip(seconds, timed["bare"], strict=True)]
        ratios[name] = statistics.median(pairs)
        about = TOOLS.get(name, "awaited by itself")
        microseconds = statistics.median(seconds) * 1e6
        print(f"  {name:<9}{about:<37}{microseconds:9.1f} us  ratio {ratios[name]:.3f}")
    return ratios


if __name__ == "__main__":
    sys.exit(main())
