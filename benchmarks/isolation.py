"""Isolation: what a call of an isolated plugin costs, over that of the same plugin in the host.

usage: python benchmarks/isolation.py [--rounds 5] [--calls 400]

Two programs serve the same async function over stdio, one with `isolate = true`; a client calls
them in turn, with 1 and with 10 calls in flight. The median of the ratios of the times is the
figure to quote: 2 is twice as long. Below it stands what an isolated plugin adds to a start and to
the memory, once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from calls import PLUGIN, Client, install_distribution


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        install_distribution(Path(home), PLUGIN)
        paths = os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "HOME": home, "PYTHONPATH": paths, "XDG_STATE_HOME": home}
        command = [sys.executable, "-m", "standards_mcp"]
        isolated = [*command, "--set", "plugins.add.isolate=true"]
        local, apart = (Client(each, environment) for each in (command, isolated))
        for client in (local, apart):
            client.calls_a_second(options.calls, 1)
        for in_flight in (1, 10):
            rates = [
                [client.calls_a_second(options.calls, in_flight) for client in (local, apart)]
                for _ in range(options.rounds)
            ]
            milliseconds = [1000 / statistics.median(each) for each in zip(*rates, strict=True)]
            ratio = statistics.median(rate[0] / rate[1] for rate in rates)
            print(
                f"{in_flight:>2} in flight: in the host {milliseconds[0]:.2f} ms a call,", end=" "
            )
            print(f"isolated {milliseconds[1]:.2f} ms, ratio {ratio:.2f}")
        print(f"memory of its process: {_resident(apart.process.pid):.0f} MiB")
        local.close()
        apart.close()
        starts = [(_start(command, environment), _start(isolated, environment)) for _ in range(3)]
    before, after = (statistics.median(each) for each in zip(*starts, strict=True))
    print(f"start to first answer of the tool: {before:.2f} s, isolated {after:.2f} s")


def _start(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    client = Client(command, environment)
    client.calls_a_second(1, 1)
    seconds = time.perf_counter() - began
    client.close()
    return seconds


def _resident(parent: int) -> float:
    """Return the memory of the child process of *parent*, in MiB; 0 where that cannot be told."""
    for status in Path("/proc").glob("[0-9]*/status"):
        lines = dict(
            line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line
        )
        if lines.get("PPid") == str(parent):
            return int(lines["VmRSS"].split()[0]) / 1024
    return 0


if __name__ == "__main__":
    main()
