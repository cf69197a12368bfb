"""Waiting for what another thread or process does, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from standards_mcp import ToolResult
from standards_mcp.host import Host

WAIT = 30.0
"""How many seconds a test waits for what takes no time on a machine at rest."""
_PAUSE = 0.01


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
        time.sleep(_PAUSE)


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
        await anyio.sleep(_PAUSE)


def _told(message: str | Callable[[], str], seconds: float) -> str:
    told = message() if callable(message) else message
    return f"waited for {seconds:g} s in vain: {told}"


async def until_answered(
    host: Host, tool: str, arguments: Mapping[str, Any] | None = None, *, seconds: float = WAIT
) -> ToolResult:
    """Call a tool of what failed until it is back, and return its first answer."""
    with anyio.fail_after(seconds):
        while (result := await host.call_tool(tool, dict(arguments or {}))).is_error:  # noqa: ASYNC110
            await anyio.sleep(10 * _PAUSE)
    return result
