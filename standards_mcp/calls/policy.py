"""What stands around every tool call, composed once for all tools.

From the outside in: one log line, the cap on the output, the wrappers of plugins, errors as
results, the deadline, the validation of the arguments, cached answers, the rate limit, the places
of the tool and of its plugin, and at last the tool's function. So a cached answer counts against no
limit, and waiting for a place counts against the deadline. Prompts and resources have the log line,
the deadline and the places of their plugin.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property
from typing import Any, TypeVar, cast

from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.results import error_result
from standards_mcp.contributions.tools import Limits, RegisteredTool
from standards_mcp.errors import (
    CrashedError,
    FilterFailedError,
    RateLimitedError,
    TimedOutError,
    ToolError,
)
from standards_mcp.plugin import ToolCall, ToolHandler, ToolResult

from .cache import AnswerCache, MemoryAnswers, RedisAnswers, answer_key
from .context import HostContext, InputRequiredError, Unattended
from .output import capped
from .rate_limits import CallRates
from .redis import redis_connections
from .threads import PluginThreads
from .wrappers import HostCall, call_within, of_host

log = logging.getLogger(__name__)


_T = TypeVar("_T")


class Policy:
    """Calls tools within the limits that each of them carries.

    Args:
        storage: A ``redis://`` URL to count rates and keep answers at; None: in this process.

    Raises:
        ConfigError: *storage* cannot be used.
    """

    def __init__(self, storage: str | None = None) -> None:
        self._pool: Any = redis_connections(storage) if storage else None
        self._threads: dict[str, PluginThreads] = {}
        self._places: dict[tuple[str, int], asyncio.Semaphore] = {}
        self._wrapped: ToolHandler | None = None

    def wrap(self, wrapper: Callable[[ToolHandler], ToolHandler]) -> None:
        """Put around the calls of tools what *wrapper* makes of their handler."""
        handler: ToolHandler = self._call_unwrapped
        wrapped = wrapper(handler)
        self._wrapped = None if wrapped is handler else wrapped

    async def call(
        self,
        item: RegisteredTool,
        arguments: Mapping[str, Any],
        context: HostContext | None = None,
    ) -> ToolResult:
        """Call a tool and return what it came to; only cancellation escapes.

        A sync function runs in one of its plugin's threads; when it overruns its deadline it is
        abandoned, since a thread cannot be stopped. What a crashed tool raised goes to the log,
        under an id that the client gets.

        Args:
            context: Who calls, and how to ask them; by default nobody who can be asked.
        """
        context = context or Unattended()
        started = time.perf_counter()
        result, outcome = None, "cancelled"
        try:
            result = await self._through_wrappers(item, arguments, context)
            result = capped(result, item.limits.max_output_tokens)
        except InputRequiredError:
            outcome = "asked"
            raise
        else:
            outcome = _outcome(result)
            return result
        finally:
            _log_call(item, arguments, result, outcome, time.perf_counter() - started)

    async def provide(
        self,
        item: Contribution,
        function: Callable[..., Any],
        keywords: Mapping[str, Any],
        render: Callable[[Any], _T],
        limits: Limits,
    ) -> _T:
        """Return what *render* makes of what a function of a prompt or a resource returns.

        Raises:
            ToolError: It refused, failed or did not answer in time.
        """
        started, outcome = time.perf_counter(), "cancelled"

        async def work() -> _T:
            async with self._places_of(f"plugin {item.plugin}", limits.plugin_concurrency):
                return render(await self._invoke(item.plugin, function, keywords))

        try:
            value = await _contained(item, limits.timeout, work, Unattended())
            outcome = "ok"
        except ToolError as exc:
            outcome = exc.error_type
            raise
        finally:
            fields = {
                item.kind: item.declared,
                "plugin": item.plugin,
                "duration_ms": _milliseconds(time.perf_counter() - started),
                "outcome": outcome,
            }
            log.info("%s provided", item.kind, extra=fields)
        return value

    def stuck_seconds(self, plugin: str) -> float:
        """For how long a function of a plugin has gone on after its call was given up."""
        threads = self._threads.get(plugin)
        return threads.stuck_seconds if threads else 0.0

    async def aclose(self) -> None:
        """Let go of shared storage; a later call connects anew."""
        if self._pool:
            await self._pool.disconnect()

    async def _through_wrappers(
        self, item: RegisteredTool, arguments: Mapping[str, Any], context: HostContext
    ) -> ToolResult:
        if self._wrapped is None:
            return await self._guarded(item, arguments, context)
        call = HostCall(
            tool=item.declared,
            plugin=item.plugin,
            arguments=dict(arguments),
            read_only=item.tool.read_only,
            caller=context.caller,
            item=item,
            context=context,
        )
        return await call_within(self._wrapped, call, item.limits.timeout)

    async def _call_unwrapped(self, call: ToolCall) -> ToolResult:
        made = of_host(call)
        return await self._guarded(made.item, call.arguments, made.context)

    async def _guarded(
        self, item: RegisteredTool, arguments: Mapping[str, Any], context: HostContext
    ) -> ToolResult:
        async def work() -> ToolResult:
            return await self._answer(item, await item.arguments.validate(arguments), context)

        try:
            return await _contained(item, item.limits.timeout, work, context)
        except ToolError as exc:
            return error_result(exc.error_type, str(exc))

    async def _answer(
        self, item: RegisteredTool, keywords: dict[str, Any], context: HostContext
    ) -> ToolResult:
        if not item.limits.cache_ttl:
            return await self._within_limits(item, keywords, context)
        return await self._cache.answer(
            answer_key(item.declared, keywords, context.caller),
            item.limits.cache_ttl,
            lambda: self._within_limits(item, keywords, context),
            keeps=lambda answer: not answer.is_error and not context.has_elicited,
        )

    async def _within_limits(
        self, item: RegisteredTool, keywords: dict[str, Any], context: HostContext
    ) -> ToolResult:
        # A call that goes on after a question was counted when it began.
        limit = None if context.is_continuation else item.limits.rate_limit
        if limit and (seconds := await self._rates.wait(limit, item.declared, context.caller)):
            raise RateLimitedError(
                f"{item.published} is limited to {limit}. Try again in {seconds} s."
            )
        limits = item.limits
        of_tool = self._places_of(f"tool {item.declared}", limits.concurrency)
        of_plugin = self._places_of(f"plugin {item.plugin}", limits.plugin_concurrency)
        if item.context:
            keywords = {**keywords, item.context: context}
        async with of_tool, of_plugin:
            value = await self._invoke(item.plugin, item.tool.function, keywords)
            return item.result.render(value)

    def _places_of(self, owner: str, size: int | None) -> AbstractAsyncContextManager[None]:
        if size is None:
            return nullcontext()
        # A new size makes new places; calls that run keep theirs.
        return self._places.setdefault((owner, size), asyncio.Semaphore(size))

    async def _invoke(
        self, plugin: str, function: Callable[..., Any], keywords: Mapping[str, Any]
    ) -> Any:
        call = functools.partial(function, **keywords)
        if inspect.iscoroutinefunction(function):
            return await call()
        threads = self._threads.setdefault(plugin, PluginThreads(plugin))
        value = await threads.run(call)
        return await value if inspect.isawaitable(value) else value

    @cached_property
    def _rates(self) -> CallRates:
        return CallRates(self._pool)

    @cached_property
    def _cache(self) -> AnswerCache:
        return AnswerCache(RedisAnswers(self._pool) if self._pool else MemoryAnswers())


async def _contained(
    item: Contribution,
    seconds: float,
    work: Callable[[], Awaitable[_T]],
    context: HostContext,
) -> _T:
    """Return what *work* returns, and let nothing escape but cancellation and a `ToolError`."""
    try:
        with context.within(seconds):
            return await work()
    except (ToolError, KeyboardInterrupt, GeneratorExit, InputRequiredError):
        raise
    except BaseException as exc:
        # Whatever else it is, such as sys.exit or a panic in native code, is the plugin's crash.
        if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
            raise
        raise _crash(item, exc) from None
    raise TimedOutError(
        f"{item.published} did not answer within {seconds:g} s. Try again with a smaller request, "
        "or raise its timeout in the configuration."
    )


def _is_cancelled() -> bool:
    """Tell whether the call is cancelled, or a tool let another task's cancellation escape."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _crash(item: Contribution, cause: BaseException) -> CrashedError:
    incident = uuid.uuid4().hex[:12]
    blamed = cause.plugin if isinstance(cause, FilterFailedError) else item.plugin
    fields = {"tool": item.declared, "plugin": blamed, "incident": incident}
    log.error("tool crashed", exc_info=cause, extra=fields)
    where = "" if blamed == item.plugin else f" of plugin {blamed!r}"
    return CrashedError(
        f"{item.published} failed with an internal error{where} (id {incident}). Try again; if it "
        "persists, the server's log has the details under this id."
    )


def _log_call(
    item: RegisteredTool,
    arguments: Mapping[str, Any],
    result: ToolResult | None,
    outcome: str,
    seconds: float,
) -> None:
    fields: dict[str, Any] = {
        "tool": item.declared,
        "plugin": item.plugin,
        "duration_ms": _milliseconds(seconds),
        "outcome": outcome,
    }
    results: object = result.structured.get("results") if result and result.structured else None
    if isinstance(results, list) and outcome == "ok":
        fields["results"] = len(cast("list[object]", results))
    if log.isEnabledFor(logging.DEBUG):
        fields["arguments"] = dict(arguments)
    log.info("tool call", extra=fields)


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 2)


def _outcome(result: ToolResult) -> str:
    if not result.is_error:
        return "ok"
    return str((result.structured or {}).get("error_type", "error"))
