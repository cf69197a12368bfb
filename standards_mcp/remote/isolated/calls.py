"""Calls of an isolated plugin, and the end of a process that is stuck after one was given up.

A process whose event loop is blocked answers nothing any more. One in which a plain function never
returns still answers, but holds a thread and perhaps a core, which only its end gives back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from standards_mcp.calls.context import HostContext
from standards_mcp.errors import ApiError
from standards_mcp.plugin import ToolResult
from standards_mcp.remote.tools import tool_result

if TYPE_CHECKING:
    from standards_mcp.remote.connection import Connection
    from standards_mcp.remote.stdio import ChildProcess

HEALTH: Final = "standards_mcp.health"

PING_SECONDS: Final = 5.0
"""How long a process may take to answer, and a function to return, after a call was given up."""

_PAUSE_SECONDS: Final = 30.0
"""How long calls wait for others to end; one that asks a user may last."""


class IsolatedCalls:
    """Calls the tools of a child process, and ends it where it is stuck.

    Args:
        connection: Returns the connection to it, or raises `ApiError`.
    """

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._child: ChildProcess | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._doubts: set[asyncio.Task[None]] = set()

    def watch(self, child: ChildProcess) -> ChildProcess:
        """Return the process that calls go to from now on."""
        self._child = child
        return child

    def stop(self) -> None:
        """Look after nothing any more."""
        for doubt in self._doubts:
            doubt.cancel()

    async def call(
        self, name: str, arguments: Mapping[str, Any], caller: HostContext | None = None
    ) -> ToolResult:
        """Return the result of a tool of the process. See `Connection.call_tool`."""
        await self._may_begin.wait()
        self._in_flight += 1
        self._idle.clear()
        try:
            result = tool_result(await self._connection().call_tool(name, arguments, caller))
        except asyncio.CancelledError:
            self._look_after(self._child)
            raise
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()
        only: Mapping[str, Any] = result.content[0] if len(result.content) == 1 else {}
        is_text = only.keys() == {"type", "text"}
        return replace(result, text=only["text"], content=()) if is_text else result

    def _look_after(self, child: ChildProcess | None) -> None:
        if child:
            doubt = asyncio.create_task(self._doubt(child))
            self._doubts.add(doubt)
            doubt.add_done_callback(self._doubts.discard)

    async def _doubt(self, child: ChildProcess) -> None:
        """End a process that does not answer, or does not come to the end of what was given up."""
        await self._stuck_seconds(child)
        await anyio.sleep(PING_SECONDS)
        # Less than that: the process heard a little later that the call was given up.
        while await self._stuck_seconds(child) > PING_SECONDS / 2:
            if self._may_begin.is_set():
                await self._end_between_calls(child)
            await anyio.sleep(PING_SECONDS)

    async def _end_between_calls(self, child: ChildProcess) -> None:
        self._may_begin.clear()
        try:
            with anyio.move_on_after(_PAUSE_SECONDS):
                await self._idle.wait()
            if not self._in_flight and await self._stuck_seconds(child):
                child.kill("it was ended: a function went on after its call was given up")
                await self._connection().excuse_end()
        finally:
            self._may_begin.set()

    async def _stuck_seconds(self, child: ChildProcess) -> float:
        """Return for how long a function has gone on; end a process that does not answer."""
        if child is not self._child or not child.is_running:
            return 0.0
        try:
            with anyio.fail_after(PING_SECONDS):
                answer = await self._connection().call_tool(HEALTH, {"ping": True})
        except TimeoutError:
            child.kill(f"it was ended: it did not answer within {PING_SECONDS:g} s")
            return 0.0
        except ApiError:
            return 0.0  # it has ended by itself
        return float((tool_result(answer).structured or {}).get("stuck_seconds", 0.0))
