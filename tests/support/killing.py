"""Start the program in processes of their own, and kill them at any moment."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any


@contextmanager
def killed_at_the_end() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the program; what still runs at the end is killed."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*arguments: str | Path) -> subprocess.Popen[str]:
        processes.append(started(*arguments))
        return processes[-1]

    try:
        yield begin
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def report_of(process: subprocess.Popen[str]) -> Any:
    """Return what a command reports that must end well."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start the program."""
    program = [sys.executable, "-m", "standards_mcp", *map(str, arguments)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(*arguments: str | Path) -> str:
    """Run the program to its good end, and return its output."""
    process = started(*arguments)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output


def killed(seconds: float, chance: Random, *arguments: str | Path) -> bool:
    """Start the program, kill it at a moment within so many seconds; True if it was at work.

    Most kills come in the second half, since the program imports its modules in the first one.
    """
    process = started(*arguments)
    time.sleep(chance.triangular(0, seconds, 0.8 * seconds))
    process.kill()
    process.communicate()
    return process.returncode < 0
