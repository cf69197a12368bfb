"""Start the registered plugins with the server, and stop them.

Plugins start in order; they stop in reverse order, those in other processes first and at the same
time.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.streams import divert_stdout
from standards_mcp._utils.text import describe_exception
from standards_mcp.errors import PluginError

from .manager import PluginManager
from .providers import provider_of
from .records import PluginRecord, Status, failure_reason

log = logging.getLogger(__name__)


@asynccontextmanager
async def running(
    manager: PluginManager, only: Collection[str] | None = None
) -> AsyncGenerator[None]:
    """Keep the lifespan of every registered plugin open.

    Args:
        only: The names of the plugins to start; by default all of them.

    Raises:
        PluginError: A plugin did not start, and it is required or ``strict`` is set.
    """
    lifespans: list[_Lifespan] = []
    records = [each for each in manager.records.values() if only is None or each.name in only]
    try:
        with manager.changes.applying():
            await _start(manager, records, lifespans)
            yield
    finally:
        # Plugins are stopped even if the server is being cancelled.
        with anyio.CancelScope(shield=True):
            # Plugins in other processes do not depend on each other, so they stop at the same time:
            # each may take long.
            await asyncio.gather(*(each.stop() for each in lifespans if each.is_remote))
            for lifespan in reversed(lifespans):
                if not lifespan.is_remote:
                    await lifespan.stop()


async def _start(
    manager: PluginManager, records: list[PluginRecord], lifespans: list[_Lifespan]
) -> None:
    """Start the plugins in order.

    A slow one does not hold up the next, but all are awaited in the end.
    """
    with manager.quarantine.watch("starting", records):
        for record in records:
            if record.status is Status.REGISTERED:
                lifespans.append(lifespan := _Lifespan(manager, record))
                with manager.quarantine.attempt(record):
                    await lifespan.wait_started(manager.timing.head_start)
    # Slow plugins go on starting concurrently, each within its own deadline.
    for lifespan in lifespans:
        await lifespan.wait_started(math.inf)


class _Lifespan:
    """One plugin's context managers, entered and left in a task of their own.

    A context manager may hold cancel scopes, and only the task that entered them may leave them.
    A task of its own can also be cancelled if the plugin does not start in time.
    """

    def __init__(self, manager: PluginManager, record: PluginRecord) -> None:
        self._manager = manager
        self._record = record
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = loop.create_future()
        self._stop_requested = asyncio.Event()
        self._is_settled = False
        provider = provider_of(record)
        self.is_remote = provider is not None
        self._start_seconds = max(manager.timing.start, provider.start_seconds if provider else 0)
        self._deadline = loop.time() + self._start_seconds
        self._task = asyncio.create_task(self._run(), name=f"lifespan of {record.name}")

    async def wait_started(self, seconds: float) -> None:
        """Wait for the plugin to start or fail, at most *seconds*.

        At its deadline, it is cancelled and counts as failed.

        Raises:
            PluginError: The plugin failed, and it is required or ``strict`` is set.
        """
        if self._is_settled:
            return
        remaining = self._deadline - asyncio.get_running_loop().time()
        await asyncio.wait(
            {self._task, self._started},
            timeout=max(0, min(seconds, remaining)),
            return_when=asyncio.FIRST_COMPLETED,
        )
        self._is_settled = True
        if self._task.done():
            cause = self._failure() or RuntimeError("it ended")
            reason = f"its lifespan failed: {failure_reason(cause)}"
            self._manager.fail(self._record, reason, cause)
        elif self._started.done():
            if self._record.status is Status.REGISTERED:
                self._record.status = Status.STARTED
        elif seconds >= remaining:
            self._task.cancel()
            reason = f"its lifespan did not start within {self._start_seconds:g} seconds"
            self._manager.fail(self._record, reason, TimeoutError())
        else:
            self._is_settled = False

    async def stop(self) -> None:
        with self._record.timed():
            if not self._started.done():
                self._task.cancel()
                return
            self._stop_requested.set()
            seconds, fields = self._manager.timing.stop, {"plugin": self._record.name}
            await asyncio.wait({self._task}, timeout=seconds)
            if not self._task.done():
                self._task.cancel()
                log.error("plugin did not stop within %g seconds", seconds, extra=fields)
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
                self._started.set_result(None)
                await self._stop_requested.wait()
        except (SystemExit, KeyboardInterrupt) as exc:
            # A plugin that exits would end the event loop and all other plugins, unless its
            # exception is converted. A real Ctrl-C still ends them.
            if is_from_outside(exc):
                raise
            raise PluginError(self._record.name, describe_exception(exc)) from exc
