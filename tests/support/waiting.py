"""Waiting for what another thread or process does, and never for ever."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio

WAIT = 90.0
"""How many seconds a test waits for what takes no time on a machine at rest."""
PAUSE = 0.01


def wait_until(
    condition: Callable[[], object],
    message: str | Callable[[], str] = "",
    *,
    seconds: float = WAIT,
) -> None:
    """Return once *condition* holds; after *seconds* the test fails with *message*."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, _told(message, seconds)
        time.sleep(PAUSE)


async def until(
    condition: Callable[[], object],
    message: str | Callable[[], str] = "",
    *,
    seconds: float = WAIT,
) -> None:
    """Do what `wait_until` does, while the event loop goes on."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, _told(message, seconds)
        await anyio.sleep(PAUSE)


def let_time_pass(seconds: float = 10 * WAIT) -> None:
    """Move the clock of the running event loop forward; the deadlines within *seconds* expire.

    A deadline that only this ends is never too short for what a test does before.
    """
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds


def is_alive(pid: int) -> bool:
    """Return True while a process runs; one that has ended and is not waited for is not alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def _told(message: str | Callable[[], str], seconds: float) -> str:
    told = message() if callable(message) else message
    return f"waited for {seconds:g} s in vain: {told}"
