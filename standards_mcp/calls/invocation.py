"""Run the functions of plugins: async ones in the event loop, others in threads of their plugin.

Threads are counted until their function returns, and never joined at the end.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from standards_mcp.errors import ThreadsStuckError

from .call import Call

log = logging.getLogger(__name__)

THREADS_PER_PLUGIN: Final = 16
_T = TypeVar("_T")


class Invocation:
    """Calls async functions in the event loop, and others in a thread of their plugin.

    A thread cannot be stopped: a function that runs when its call is given up goes on.
    """

    def __init__(self) -> None:
        self._threads: dict[str, PluginThreads] = {}

    async def __call__(self, call: Call) -> Any:
        """Return the rendered result of the function."""
        function = functools.partial(call.function, **{**call.keywords, **call.given})
        if inspect.iscoroutinefunction(call.function):
            return call.render(await function())
        value = await self._threads_of(call.item.plugin).run(function)
        return call.render(await value if inspect.isawaitable(value) else value)

    def stuck_seconds(self, plugin: str) -> float:
        """Return the seconds that a plugin's function has run on after its call was given up."""
        threads = self._threads.get(plugin)
        return threads.stuck_seconds if threads else 0.0

    def _threads_of(self, plugin: str) -> PluginThreads:
        return self._threads.setdefault(plugin, PluginThreads(plugin))


class PluginThreads:
    """Runs a plugin's sync functions in a limited number of threads.

    A thread cannot be stopped. A call that is cancelled returns at once, but its thread counts
    until the function returns, so a plugin that hangs uses up only its own threads.
    """

    def __init__(self, plugin: str, size: int = THREADS_PER_PLUGIN) -> None:
        self._plugin = plugin
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._abandoned: dict[concurrent.futures.Future[None], float] = {}

    @property
    def stuck_seconds(self) -> float:
        """For how long a function has run on after its call was cancelled; 0 if none has."""
        return max((time.monotonic() - since for since in self._abandoned.values()), default=0.0)

    async def run(self, function: Callable[[], _T]) -> _T:
        """Wait for a free thread, and return what *function* returns.

        Raises:
            ThreadsStuckError: Calls that were cancelled hold all threads, so none may get free.
        """
        if len(self._abandoned) >= self._size:
            log.error("all threads of a plugin are stuck", extra={"plugin": self._plugin})
            raise ThreadsStuckError(
                f"{len(self._abandoned)} earlier calls of plugin {self._plugin!r} are still "
                "running, and no more are started until one of them ends. Try again later; if it "
                "persists, restart the server, or disable the plugin in its configuration."
            )
        await self._free.acquire()
        ended = self._tracked()

        def work() -> _T:
            if not ended.set_running_or_notify_cancel():
                raise concurrent.futures.CancelledError  # nobody waits for it
            try:
                return function()
            except GeneratorExit as exc:
                # Raised anew where it is awaited, it would close the coroutines that wait.
                raise RuntimeError("the function raised GeneratorExit") from exc
            finally:
                ended.set_result(None)

        try:
            # A limiter of anyio forgets an abandoned thread, so `_free` counts in its place.
            return await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
            )
        finally:
            # `cancel` fails once the function has begun: its thread is abandoned, and counts.
            if not ended.done() and not ended.cancel():
                self._abandoned[ended] = time.monotonic()

    def _tracked(self) -> concurrent.futures.Future[None]:
        """Return a future for the end of a thread's work, which frees its place."""
        loop = asyncio.get_running_loop()
        ended = concurrent.futures.Future[None]()

        def release() -> None:
            self._abandoned.pop(ended, None)
            self._free.release()

        def notify(_: object) -> None:
            # The worker thread calls this, and asyncio's semaphore is not safe for threads.
            with suppress(RuntimeError):  # the loop is closed, so nobody waits for a place
                loop.call_soon_threadsafe(release)

        ended.add_done_callback(notify)
        return ended


class UnjoinedExecutor(concurrent.futures.ThreadPoolExecutor):
    """A thread pool for an event loop's `asyncio.to_thread` that never joins its threads.

    An event loop joins the threads of its default pool when it closes, so one function that hangs
    would keep the process from ending.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Start nothing more, and do not wait for the threads, whatever *wait* is."""
        del wait
        super().shutdown(wait=False, cancel_futures=cancel_futures)
