"""Compose the steps of a call, and run the functions of plugins.

From the outside in: records, gates, masked errors, the cap on the output, wrappers of plugins,
errors as results, crashes, the deadline, validation of the arguments, cached answers, rate limits,
slots, and the function. Prompts and resources skip the steps for results of tools and the cache;
long answers are refused. Completions also skip validation and the limits of rate and length. Routes
skip validation and the limit of length.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ThreadsStuckError
from standards_mcp.plugin import ToolResult

from .cache import Cache, SharedRedis
from .call import Call, Gate, Observer, Recording, Step, compose
from .context import CALLER, HostContext
from .limits import RateLimits, Slots, admission, validation, within_deadline
from .output import as_results, cap_output, contain, masking, refuse_long
from .wrappers import Wrappers

log = logging.getLogger(__name__)

THREADS_PER_PLUGIN: Final = 16
_T = TypeVar("_T")


class Pipeline:
    """Runs calls through the steps, within the limits that each call carries.

    Args:
        secrets: Returns the texts to mask in errors.
        observers: Receive the record of each call.
        gates: Each may refuse a call before any code of a plugin runs for it.
        storage: A ``redis://`` URL for rate limits and cached answers; None: in this process.

    Attributes:
        get: Returns the messages of a prompt or the contents of a resource. Like `complete` and
            `respond`, it raises a `ToolError` if the plugin refused, failed or was too slow.
        complete: Returns the values that complete an argument.
        respond: Answers the request of a route; the function of the call sends the response.
        recording: Reports calls to the observers.

    Raises:
        ConfigError: *storage* cannot be used.
    """

    def __init__(
        self,
        secrets: Callable[[], frozenset[str]],
        observers: Sequence[Observer] = (),
        gates: Sequence[Gate] = (),
        storage: str | None = None,
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        self._redis = SharedRedis(storage, timing.redis) if storage else None
        self.wrappers, self.invocation = Wrappers(), Invocation()
        self.recording, self.slots = Recording(observers), Slots()
        self.rate_limits = RateLimits(self._redis)
        admit, mask = admission(gates), masking(secrets)
        validate = validation(self.rate_limits.count)
        begin: tuple[Step, ...] = (self.recording, admit, mask)
        tool: tuple[Step, ...] = (
            self.recording,
            as_results,  # also for refusals
            admit,
            mask,
            cap_output,
            # Around errors and the deadline, so that wrappers see every failure as a result.
            self.wrappers,
            as_results,
            contain,
            # Before the slots: waiting for a slot is part of the time that a client waits.
            within_deadline,
            validate,
            # Before the limits: a cached answer costs nothing that they protect.
            Cache(self._redis),
            self.rate_limits,
            self.slots,
        )
        bounded: tuple[Step, ...] = (contain, within_deadline)
        limited: tuple[Step, ...] = (self.rate_limits, self.slots)
        self._call_tool = compose(tool, self.invocation)
        self.get = compose((*begin, refuse_long, *bounded, validate, *limited), self.invocation)
        # Completions follow each key that a user types, and a refusal would not be shown, so they
        # have no rate limit.
        self.complete = compose((*begin, *bounded, self.slots), self.invocation)
        self.respond = compose((*begin, *bounded, *limited), self.invocation)

    async def call_tool(
        self, item: RegisteredTool, arguments: Mapping[str, Any], context: HostContext
    ) -> ToolResult:
        """Call a tool and return its result; failures are results, too.

        Raises:
            InputRequiredError: The client must ask its user, and call again.
        """
        call = Call(
            item=item,
            function=item.tool.function,
            render=item.result.render,
            arguments=arguments,
            context=context,
            host_arguments={item.context: context} if item.context else {},
        )
        result: ToolResult = await self._call_tool(call)
        return result

    async def aclose(self) -> None:
        """Close the connections to shared storage; a later call connects anew."""
        if self._redis:
            await self._redis.aclose()


class Invocation:
    """Calls async functions in the event loop, and others in a thread of their plugin."""

    def __init__(self) -> None:
        self._threads: dict[str, PluginThreads] = {}

    async def __call__(self, call: Call) -> Any:
        """Return the rendered result of the function."""
        CALLER.set(call.context.principal)
        if inspect.iscoroutinefunction(call.function):
            return call.render(await call.function(**call.keywords, **call.host_arguments))
        function = functools.partial(call.function, **call.keywords, **call.host_arguments)
        plugin = call.item.plugin
        value = await self._threads.setdefault(plugin, PluginThreads(plugin)).run(function)
        return call.render(await value if inspect.isawaitable(value) else value)

    def stuck_seconds(self, plugin: str) -> float:
        """Return the age of the oldest abandoned call that a plugin still runs, or 0."""
        threads = self._threads.get(plugin)
        return threads.stuck_seconds if threads else 0.0


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
        """The age of the oldest abandoned call that is still running, or 0."""
        return max((time.monotonic() - since for since in self._abandoned.values()), default=0.0)

    async def run(self, function: Callable[[], _T]) -> _T:
        """Call *function* in a thread, as soon as one is free.

        Raises:
            ThreadsStuckError: Abandoned calls hold all threads, so none may become free.
        """
        if len(self._abandoned) >= self._size:
            log.error("all threads of a plugin are stuck", extra={"plugin": self._plugin})
            raise ThreadsStuckError(
                f"{len(self._abandoned)} earlier calls of plugin {self._plugin!r} are still "
                "running, and no more are started until one of them ends. Try again later; if it "
                "persists, restart the server, or disable the plugin in its configuration."
            )
        await self._free.acquire()
        loop, ended = asyncio.get_running_loop(), concurrent.futures.Future[None]()

        def release() -> None:
            self._abandoned.pop(ended, None)
            self._free.release()

        def notify(_: object) -> None:
            # The worker thread calls this, and asyncio's semaphore is not thread-safe.
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(release)

        ended.add_done_callback(notify)

        def work() -> _T:
            if not ended.set_running_or_notify_cancel():
                raise concurrent.futures.CancelledError  # the caller has left
            try:
                return function()
            except GeneratorExit as exc:
                # If it were passed on, it would close the coroutines that await the thread.
                raise RuntimeError("the function raised GeneratorExit") from exc
            finally:
                ended.set_result(None)

        try:
            # A limiter of anyio forgets abandoned threads, so `_free` counts instead.
            return await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
            )
        finally:
            # `cancel` fails once the function has begun: its thread is abandoned, and still counts.
            if not ended.done() and not ended.cancel():
                self._abandoned[ended] = time.monotonic()


class UnjoinedExecutor(concurrent.futures.ThreadPoolExecutor):
    """A thread pool for an event loop's `asyncio.to_thread` that never joins its threads.

    An event loop joins the threads of its default pool when it closes, so one function that hangs
    would keep the process from ending.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Refuse new work, and never wait for the threads."""
        del wait
        super().shutdown(wait=False, cancel_futures=cancel_futures)
