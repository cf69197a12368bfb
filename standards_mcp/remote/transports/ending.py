"""The end of a child process, with all that it started and that is still in its group."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Final, TypeAlias

import anyio

GRACE_SECONDS: Final = 2.0
"""How long a process may take to end once its stdin is closed, and again once it is asked to."""
_POLL_SECONDS: Final = 0.02

_Process: TypeAlias = "asyncio.subprocess.Process | subprocess.Popen[bytes]"


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Let the process end by itself, then ask it to, then kill it with all that it started.

    The last step is taken in any case: what it started may outlive it.
    """
    if process.stdin:
        process.stdin.close()
    if not await _ended(process):
        _signal_tree(process, signal.SIGTERM)
        await _ended(process)
    kill_tree(process)
    await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> bool:
    # Waiting for the process would also wait for every other that inherited its pipes.
    with anyio.move_on_after(GRACE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110  - nothing tells of it, see above
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None


def kill_tree(process: _Process) -> None:
    """End the process and all that it started, at once."""
    _signal_tree(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _signal_tree(process: _Process, number: int) -> None:
    """Signal the process and all that it started; those may still be there when it is gone."""
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    elif process.returncode is None:
        tree = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(tree, capture_output=True, check=False)  # noqa: S603


def describe_code(code: int | None) -> str:
    """Return how a process ended, by the exit code that Python tells."""
    if code is None:
        return "it does not end"
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


def release(process: asyncio.subprocess.Process) -> None:
    """Close the pipes, which a process that left the group may still hold open."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
