"""Starts the registered plugins when the server starts, and stops them in reverse order."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import anyio

from standards_mcp._utils.streams import divert_stdout
from standards_mcp._utils.text import describe_exception
from standards_mcp.errors import PluginError

from .manager import PluginManager
from .providers import provider_of
from .records import PluginRecord, Status

log = logging.getLogger(__name__)


START_TIMEOUT: Final = 20.0
"""Seconds that a plugin's lifespan may take to start; clients give a server 30 to 60."""
HEAD_START: Final = 2.0
"""Seconds after which the next plugin is started beside one that takes longer."""
STOP_TIMEOUT: Final = 5.0
"""Seconds that it may take to stop, after which it is abandoned."""


@asynccontextmanager
async def running(manager: PluginManager) -> AsyncGenerator[None]:
    """Keep the lifespan of every registered plugin open.

    Raises:
        PluginError: A plugin did not start that is required, or any under ``strict``.
    """
    lifespans: list[_Lifespan] = []
    try:
        await _start(manager, lifespans)
        yield
    finally:
        # A server that is being cancelled still stops its plugins.
        with anyio.CancelScope(shield=True):
            # Other processes know nothing of each other, and each may take its time to end.
            await asyncio.gather(*(each.stop() for each in lifespans if each.is_elsewhere))
            for lifespan in reversed(lifespans):
                if not lifespan.is_elsewhere:
                    await lifespan.stop()


async def _start(manager: PluginManager, lifespans: list[_Lifespan]) -> None:
    """Start the plugins in order; one that is slow holds up the next for a moment only."""
    with manager.quarantine.watch("starting", manager.records.values()):
        for record in manager.records.values():
            if record.status is Status.REGISTERED:
                lifespans.append(lifespan := _Lifespan(manager, record))
                with manager.quarantine.trying(record):
                    await lifespan.settle(HEAD_START)
    for lifespan in lifespans:
        await lifespan.settle(math.inf)


class _Lifespan:
    """One plugin's context managers, entered and left in a task of their own.

    A task of its own, because a context manager may hold cancel scopes, which must be left by
    the task that entered them, and because starting has a deadline.
    """

    def __init__(self, manager: PluginManager, record: PluginRecord) -> None:
        self._manager = manager
        self._record = record
        self._started = asyncio.Event()
        self._stop = asyncio.Event()
        self._outcome: bool | None = None  # whether it started, once that is known
        source = provider_of(record)
        self.is_elsewhere = source is not None
        self._seconds = max(START_TIMEOUT, source.start_seconds if source else 0)
        self._deadline = asyncio.get_running_loop().time() + self._seconds
        self._task = asyncio.create_task(self._run(), name=f"lifespan of {record.name}")

    async def settle(self, seconds: float) -> None:
        """Wait for so long, and not beyond its deadline, until it has started or failed.

        Raises:
            PluginError: It failed, and the plugin is required.
        """
        remaining = self._deadline - asyncio.get_running_loop().time()
        waiter = asyncio.create_task(self._started.wait())
        try:
            await asyncio.wait(
                {self._task, waiter},
                timeout=max(0, min(seconds, remaining)),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            waiter.cancel()
        if self._outcome is None:
            self._conclude(is_late=seconds >= remaining)

    def _conclude(self, *, is_late: bool) -> None:
        if self._task.done():
            self._outcome = False
            cause = self._failure() or RuntimeError("it ended")
            what = cause.reason if isinstance(cause, PluginError) else describe_exception(cause)
            self._manager.fail(self._record, f"its lifespan failed: {what}", cause)
        elif self._started.is_set():
            self._outcome = True
            if self._record.status is Status.REGISTERED:
                self._record.status = Status.STARTED
        elif is_late:
            self._outcome = False
            self._task.cancel()
            reason = f"its lifespan did not start within {self._seconds:g} seconds"
            self._manager.fail(self._record, reason, TimeoutError())

    async def stop(self) -> None:
        with self._record.timed():
            await self._end()

    async def _end(self) -> None:
        if not self._outcome:
            self._task.cancel()
            return
        self._stop.set()
        await asyncio.wait({self._task}, timeout=STOP_TIMEOUT)
        fields = {"plugin": self._record.name}
        if not self._task.done():
            self._task.cancel()
            log.error("plugin did not stop within %g seconds", STOP_TIMEOUT, extra=fields)
        elif failure := self._failure():
            log.error("plugin did not stop cleanly", exc_info=failure, extra=fields)

    def _failure(self) -> BaseException | None:
        if self._task.cancelled():
            return asyncio.CancelledError()
        return self._task.exception()

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                with self._record.timed():
                    with divert_stdout():
                        lifespans = self._manager.call(self._record, "lifespan")
                    for lifespan in lifespans:
                        await stack.enter_async_context(lifespan)
                self._started.set()
                await self._stop.wait()
        except SystemExit as exc:
            # Left to itself, it would end the event loop and every other plugin with it.
            raise PluginError(self._record.name, f"it called sys.exit({exc.code!r})") from exc
