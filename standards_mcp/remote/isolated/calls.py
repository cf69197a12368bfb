"""Calls of an isolated plugin, and the end of a process that is stuck after one was cancelled.

A process whose event loop is blocked answers nothing any more. One in which a plain function never
returns still answers, but that function holds a thread and perhaps a core, and only the end of the
process gives them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio
from pydantic import ValidationError

from standards_mcp.calls.context import HostContext
from standards_mcp.config.timing import Timing
from standards_mcp.errors import (
    ApiError,
    CannotAskError,
    CrashedError,
    InvalidInputError,
    NotFoundError,
    TimedOutError,
    ToolError,
)
from standards_mcp.plugin import ToolResult
from standards_mcp.remote.errors import RefusedError, why_not_valid
from standards_mcp.remote.tools import tool_result

from .protocol import CALLER, LOG_FIELDS, CheckHealth, HealthReport, Request

if TYPE_CHECKING:
    from standards_mcp.remote.connection import Connection
    from standards_mcp.remote.transports.stdio import StdioTransport

_ERRORS: Final = {
    each.error_type: each
    for each in (ApiError, CrashedError, InvalidInputError, NotFoundError, TimedOutError)
}


class IsolatedCalls:
    """Asks a process for what its plugin contributes, and ends it where it is stuck.

    Args:
        connection: Returns the connection to it, or raises `ApiError`.
    """

    def __init__(self, connection: Callable[[], Connection], timing: Timing) -> None:
        self._connection = connection
        self._timing = timing
        self._process: StdioTransport | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._checks: set[asyncio.Task[None]] = set()

    def watch(self, process: StdioTransport) -> StdioTransport:
        """Return the process that calls go to from now on."""
        self._process = process
        return process

    def stop(self) -> None:
        """Check no process any more."""
        for check in self._checks:
            check.cancel()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], caller: HostContext
    ) -> ToolResult:
        """Return the result of a tool. See `Connection.call_tool`."""
        async with self._counted():
            meta = {CALLER: caller.caller}  # each caller's answers and limits are its own
            raw = await self._connection().call_tool(name, arguments, caller, meta)
        told: dict[str, Any] = raw.get("_meta") or {}
        caller.add_log_fields(**told.pop(LOG_FIELDS, {}))
        result = tool_result(raw)
        only: Mapping[str, Any] = result.content[0] if len(result.content) == 1 else {}
        is_text = only.keys() == {"type", "text"}
        return replace(result, text=only["text"], content=()) if is_text else result

    async def request(self, request: Request, caller: HostContext | None = None) -> Any:
        """Return the result of a request, of the type that it names.

        Args:
            caller: Who is asked what the plugin asks; by default nobody.

        Raises:
            InputRequiredError: The caller's client is asked, and asks again.
            ToolError: The plugin refused it or failed, or there was no answer.
        """
        async with self._counted():
            return await self._request(request, caller)

    async def _request(self, request: Request, caller: HostContext | None = None) -> Any:
        params = request.model_dump(mode="json", exclude_unset=True)
        try:
            raw = await self._connection().ask(request.method, params, caller)
        except RefusedError as exc:
            if not exc.refused_type:
                raise
            data = {key: exc.error_data.get(key) for key in ("retry_after", "status", "details")}
            if exc.refused_type == CannotAskError.error_type:
                missing = data["details"]["missing_capability"]
                raise CannotAskError(message=exc.reason, ability=missing) from None
            raise _ERRORS.get(exc.refused_type, ToolError)(exc.reason, **data) from None
        try:
            return request.decode_result(raw)
        except ValidationError as exc:
            message = f"an isolated plugin answered nonsense: {why_not_valid(exc)}"
            raise ApiError(message) from None

    @asynccontextmanager
    async def _counted(self) -> AsyncGenerator[None]:
        await self._may_begin.wait()
        self._in_flight += 1
        self._idle.clear()
        try:
            yield
        except asyncio.CancelledError:
            if self._process:
                check = asyncio.create_task(self._check_stuck(self._process))
                self._checks.add(check)
                check.add_done_callback(self._checks.discard)
            raise
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _check_stuck(self, process: StdioTransport) -> None:
        """End a process that does not answer, or still runs what was cancelled."""
        await self._stuck_seconds(process)
        await anyio.sleep(self._timing.stuck)
        # Half of it: the process learnt a little later that the call was cancelled.
        while await self._stuck_seconds(process) > self._timing.stuck / 2:
            if self._may_begin.is_set():
                await self._end_between_calls(process)
            await anyio.sleep(self._timing.stuck)

    async def _end_between_calls(self, process: StdioTransport) -> None:
        """End a process once no call runs. Others wait meanwhile: under load, one always runs."""
        self._may_begin.clear()
        try:
            with anyio.move_on_after(self._timing.drain):
                await self._idle.wait()
            if not self._in_flight and await self._stuck_seconds(process):
                process.kill("it was ended: a function went on after its call was given up")
                await self._connection().reset_backoff()
        finally:
            self._may_begin.set()

    async def _stuck_seconds(self, process: StdioTransport) -> float:
        """Return for how long a function has gone on; end a process that does not answer."""
        if process is not self._process or not process.is_running:
            return 0.0
        try:
            with anyio.fail_after(self._timing.stuck):
                report: HealthReport = await self._request(CheckHealth(ping=True))
                return report.stuck_seconds
        except TimeoutError:
            process.kill(f"it was ended: it did not answer within {self._timing.stuck:g} s")
        except ToolError:
            pass  # it has ended by itself
        return 0.0
