"""What stands around every tool call, composed once for all tools.

From the outside in: one log line, errors as results, the cap on the output, the deadline, the
validation of the arguments, cached answers, the rate limit, the places of the tool and of its
plugin, and at last the tool's function. So a cached answer counts against no limit, and waiting
for a place counts against the deadline.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property
from typing import Any, Final, cast

import anyio

from .call_cache import AnswerCache, MemoryAnswers, RedisAnswers, answer_key
from .call_rates import CallRates
from .declarations import RegisteredTool
from .errors import FilterFailedError, ToolError
from .plugin import ToolResult
from .redis_connections import redis_connections
from .signatures import error_result
from .threads import PluginThreads
from .token_counts import capped

log = logging.getLogger(__name__)

_LOCAL: Final = "local"


class RateLimitedError(ToolError):
    """The tool was called too often."""

    error_type = "rate_limited"


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

    async def call(
        self, item: RegisteredTool, arguments: Mapping[str, Any], caller: str = _LOCAL
    ) -> ToolResult:
        """Call a tool and return what it came to; only cancellation escapes.

        A sync function runs in one of its plugin's threads; when it overruns its deadline it is
        abandoned, since a thread cannot be stopped. What a crashed tool raised goes to the log,
        under an id that the client gets.

        Args:
            caller: Who calls; limits and cached answers are each caller's own.
        """
        started = time.perf_counter()
        result = None
        try:
            result = await self._guarded(item, arguments, caller)
            result = capped(result, item.limits.max_output_tokens)
            return result
        finally:
            _log_call(item, arguments, result, time.perf_counter() - started)

    async def aclose(self) -> None:
        """Let go of shared storage; a later call connects anew."""
        if self._pool:
            await self._pool.disconnect()

    async def _guarded(
        self, item: RegisteredTool, arguments: Mapping[str, Any], caller: str
    ) -> ToolResult:
        try:
            with anyio.move_on_after(item.limits.timeout):
                keywords = await item.arguments.validate(arguments)
                return await self._answer(item, keywords, caller)
        except ToolError as exc:
            return error_result(exc.error_type, str(exc))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as exc:
            # Whatever else it is, such as sys.exit or a panic in native code, is the tool's crash.
            if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
                raise
            return _crash(item, exc)
        message = (
            f"{item.published} did not answer within {item.limits.timeout:g} s. Try again with a "
            "smaller request, or raise [tools] timeout in the configuration."
        )
        return error_result("timeout", message)

    async def _answer(
        self, item: RegisteredTool, keywords: dict[str, Any], caller: str
    ) -> ToolResult:
        if not item.limits.cache_ttl:
            return await self._within_limits(item, keywords, caller)
        return await self._cache.answer(
            answer_key(item.tool.name, keywords, caller),
            item.limits.cache_ttl,
            lambda: self._within_limits(item, keywords, caller),
        )

    async def _within_limits(
        self, item: RegisteredTool, keywords: dict[str, Any], caller: str
    ) -> ToolResult:
        limit = item.limits.rate_limit
        if limit and (seconds := await self._rates.wait(limit, item.tool.name, caller)):
            raise RateLimitedError(
                f"{item.published} is limited to {limit}. Try again in {seconds} s."
            )
        limits = item.limits
        of_tool = self._places_of(f"tool {item.tool.name}", limits.concurrency)
        of_plugin = self._places_of(f"plugin {item.plugin}", limits.plugin_concurrency)
        async with of_tool, of_plugin:
            return item.result.render(await self._invoke(item, keywords))

    def _places_of(self, owner: str, size: int | None) -> AbstractAsyncContextManager[None]:
        if size is None:
            return nullcontext()
        # A new size makes new places; calls that run keep theirs.
        return self._places.setdefault((owner, size), asyncio.Semaphore(size))

    async def _invoke(self, item: RegisteredTool, keywords: dict[str, Any]) -> Any:
        call = functools.partial(item.tool.function, **keywords)
        if inspect.iscoroutinefunction(item.tool.function):
            return await call()
        threads = self._threads.setdefault(item.plugin, PluginThreads(item.plugin))
        value = await threads.run(call)
        return await value if inspect.isawaitable(value) else value

    @cached_property
    def _rates(self) -> CallRates:
        return CallRates(self._pool)

    @cached_property
    def _cache(self) -> AnswerCache:
        return AnswerCache(RedisAnswers(self._pool) if self._pool else MemoryAnswers())


def _is_cancelled() -> bool:
    """Tell whether the call is cancelled, or a tool let another task's cancellation escape."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _crash(item: RegisteredTool, cause: BaseException) -> ToolResult:
    incident = uuid.uuid4().hex[:12]
    blamed = cause.plugin if isinstance(cause, FilterFailedError) else item.plugin
    fields = {"tool": item.tool.name, "plugin": blamed, "incident": incident}
    log.error("tool crashed", exc_info=cause, extra=fields)
    where = "" if blamed == item.plugin else f" of plugin {blamed!r}"
    message = (
        f"{item.published} failed with an internal error{where} (id {incident}). Try again; if it "
        "persists, the server's log has the details under this id."
    )
    return error_result("internal_error", message)


def _log_call(
    item: RegisteredTool, arguments: Mapping[str, Any], result: ToolResult | None, seconds: float
) -> None:
    fields: dict[str, Any] = {
        "tool": item.tool.name,
        "plugin": item.plugin,
        "duration_ms": round(seconds * 1000, 2),
        "outcome": _outcome(result),
    }
    results: object = result.structured.get("results") if result and result.structured else None
    if isinstance(results, list) and fields["outcome"] == "ok":
        fields["results"] = len(cast("list[object]", results))
    if log.isEnabledFor(logging.DEBUG):
        fields["arguments"] = dict(arguments)
    log.info("tool call", extra=fields)


def _outcome(result: ToolResult | None) -> str:
    if result is None:
        return "cancelled"
    if not result.is_error:
        return "ok"
    return str((result.structured or {}).get("error_type", "error"))
