"""The progress of a call, told at a rate that clients can use.

A tool may report in every round of a loop. Each report would be a message that the client, and the
process between, has to read before the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeAlias

import anyio
import anyio.lowlevel
import pydantic_core
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from standards_mcp._utils.text import readable
from standards_mcp.remote.definitions import why_not_valid

log = logging.getLogger(__name__)

FIRST_REPORTS: Final = 50
"""How many reports of a call are sent one by one, so that every step of a short one is told."""
PAUSE_SECONDS: Final = 0.1
"""How long a call then waits between two reports that it sends."""

# What every client can read: others have larger integers than JSON does.
_Number: TypeAlias = Annotated[int, Field(ge=-(2**53), le=2**53)] | FiniteFloat
_Report: TypeAlias = tuple[_Number, _Number | None, str | None]
_REPORT: Final[TypeAdapter[_Report]] = TypeAdapter(_Report)


class ProgressReports:
    """Sends the reports of one call: the first one by one, then the newest after each pause.

    Args:
        tool: What the log calls it.
        send: Sends the done part, the total and the message of a report.
    """

    def __init__(
        self, tool: str, send: Callable[[float, float | None, str | None], Awaitable[None]]
    ) -> None:
        self._tool = tool
        self._send = send
        self._left = FIRST_REPORTS
        self._newest: _Report | None = None
        self._sending: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._has_dropped = False

    async def report(self, done: object, total: object, message: object) -> None:
        """Send a report at once or, of many, soon, unless a newer one comes first.

        One that cannot be sent is dropped; the log says so at the first of a call.
        """
        report = self._checked(done, total, message)
        if report and not self._ending.is_set():
            if self._left:
                self._left -= 1
                await self._send(*report)
            else:
                self._newest = report
                self._sending = self._sending or asyncio.create_task(self._send_newest())
        # A tool that does nothing else would keep the loop, and could not be cancelled.
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Send the last report if it is not sent yet; what comes later is dropped."""
        self._ending.set()
        if sending := self._sending:
            try:
                await asyncio.wait({sending})
            finally:
                sending.cancel()

    async def _send_newest(self) -> None:
        while self._newest:
            report, self._newest = self._newest, None
            await self._send(*report)
            with anyio.move_on_after(PAUSE_SECONDS):
                await self._ending.wait()
        self._sending = None

    def _checked(self, *given: object) -> _Report | None:
        try:
            done, total, message = _REPORT.validate_python(given)
            report = (done, total, message and readable(message))
            pydantic_core.to_json(report)
        except ValueError as exc:
            reason = why_not_valid(exc) if isinstance(exc, ValidationError) else str(exc)
            if not self._has_dropped:
                log.warning("progress was dropped", extra={"tool": self._tool, "reason": reason})
            self._has_dropped = True
            return None
        return report
