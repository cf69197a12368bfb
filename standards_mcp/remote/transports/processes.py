"""The processes that a process has started, as far as Linux tells of them in ``/proc``.

Most stay in its session. One that leaves it, as daemons do, is known by the mark in the environment
that it began with: it has inherited that, and can no longer change it there.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

# Variables of the host begin with its name; this one is none of its settings.
_VARIABLE: Final = "_STANDARDS_MCP_RUN"
_ROUNDS: Final = 20
_STATE: Final = 0
_SESSION: Final = 3


def new_mark() -> dict[str, str]:
    """Return a variable that no other process has, for the environment of a new one."""
    return {_VARIABLE: secrets.token_hex(16)}


def count_processes(session: int) -> int:
    """Return how many processes a session has; 0 where the system does not tell."""
    return sum(fields[_SESSION] == b"%d" % session for _, fields in _running())


def count_departed(session: int, mark: Mapping[str, str]) -> int:
    """Return how many processes with a mark have left a session."""
    return len(_departed(session, mark))


def end_departed(session: int, mark: Mapping[str, str]) -> list[int]:
    """End all processes with a mark that have left a session; return their numbers."""
    ended: list[int] = []
    for _ in range(_ROUNDS):  # one may start another meanwhile
        found = [each for each in _departed(session, mark) if each not in ended]
        if not found:
            break
        ended += [number for number in found if _end(number, mark)]
    return ended


def newest_process() -> bytes:
    """Return the number of the process that was started last; nothing where none is told."""
    with suppress(OSError):
        return Path("/proc/loadavg").read_bytes().split()[-1]
    return b""


def _departed(session: int, mark: Mapping[str, str]) -> list[int]:
    return [
        number
        for number, fields in _running()
        if fields[_SESSION] != b"%d" % session and _has(number, mark)
    ]


def _running() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the numbers of all processes, with what stands after their names in ``stat``."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of a program, which stands in brackets, may hold anything.
            fields = file.read_bytes().rpartition(b")")[2].split()
            if fields[_STATE] != b"Z":
                yield int(file.parent.name), fields


def _has(number: int, mark: Mapping[str, str]) -> bool:
    with suppress(OSError):
        variables = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
        return all(f"{name}={value}".encode() in variables for name, value in mark.items())
    return False


def _end(number: int, mark: Mapping[str, str]) -> bool:
    """End a process, unless its number is by now that of another; tell whether it was ended."""
    if sys.platform != "linux":
        return False
    with suppress(OSError, AttributeError):  # not every Linux has such handles
        handle = os.pidfd_open(number)
        try:
            if _has(number, mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False
