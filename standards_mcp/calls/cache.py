"""Cache answers of tools, in this process or in a Redis that several processes share."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import anyio
import pydantic_core
from pydantic import TypeAdapter

from standards_mcp._utils.installation import HOST, install_command
from standards_mcp.errors import CannotAskError, ConfigError, RateLimitedError
from standards_mcp.plugin import ToolResult

from .call import Call, CallNext

log = logging.getLogger(__name__)

# Pause after a failure, so that calls do not wait for an unavailable Redis.
_REST_SECONDS: Final = 5.0
_T = TypeVar("_T")
_MAX_BYTES: Final = 64 * 1024 * 1024
_PREFIX: Final = "standards-mcp:answer:"
_CALLER_ERRORS: Final = (RateLimitedError, CannotAskError)


class SharedRedis:
    """A Redis client with a circuit breaker: no requests for some seconds after a failure.

    Args:
        url: A ``redis://`` or ``rediss://`` URL.
        seconds: The timeout of one request.

    Attributes:
        pool: The connections; they open at the first use, and again after a disconnect.

    Raises:
        ConfigError: The package ``redis`` is not installed, or the URL has a wrong option.
    """

    def __init__(self, url: str, seconds: float) -> None:
        try:
            from redis import asyncio as redis  # noqa: PLC0415  - an extra
            from redis.asyncio.retry import Retry  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415
        except ImportError:
            raise ConfigError(
                "[tools] storage needs the package redis, which is not installed; remove the "
                f"setting or run `{install_command(HOST, 'redis')}`"
            ) from None
        timeouts = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
        retry_once = Retry(NoBackoff(), 1)  # an idle connection may have been closed
        try:
            pool = cast("Any", redis.ConnectionPool).from_url(url, retry=retry_once, **timeouts)
        except ValueError as exc:
            raise ConfigError(f"[tools] storage: {exc}; correct the URL") from None
        self.pool: Any = pool
        self._seconds = seconds
        self._is_down, self._paused_until = False, 0.0
        self._requests = set[asyncio.Task[Any]]()

    async def ask(self, request: Callable[[], Awaitable[_T]], warning: str) -> _T | None:
        """Return the answer, or None after a failure or while the circuit breaker is open.

        Args:
            warning: The text for the log if there is no answer.
        """
        if time.monotonic() < self._paused_until:
            return None
        # Use a separate task: if the call is cancelled at its deadline, the task still records the
        # failure and opens the circuit breaker.
        task = asyncio.create_task(self._ask(request, warning))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        # Half-open: the request above only probes Redis in the background; this call goes on
        # without it.
        if self._is_down:
            self._paused_until = time.monotonic() + _REST_SECONDS
            return None
        return await asyncio.shield(task)

    async def _ask(self, request: Callable[[], Awaitable[_T]], warning: str) -> _T | None:
        from redis import exceptions  # noqa: PLC0415  - an extra

        outages = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await request()
        except Exception as exc:  # noqa: BLE001  - whatever the network and the server do
            if not self._is_down:
                log.warning(warning, extra={"reason": str(exc) or "it does not answer"})
            if isinstance(exc, outages):
                self._is_down, self._paused_until = True, time.monotonic() + _REST_SECONDS
            return None
        if self._is_down:
            log.warning("Redis answers again")
        self._is_down, self._paused_until = False, 0.0
        return answer

    async def aclose(self) -> None:
        """Close the connections; a later request connects anew."""
        for task in self._requests:
            task.cancel()
        await self.pool.disconnect()


class Cache:
    """Caches answers by tool, arguments and caller; equal calls at one time run once.

    Args:
        redis: A Redis that several processes share; None: this process keeps its own answers.
    """

    def __init__(self, redis: SharedRedis | None = None) -> None:
        self._redis = redis
        self._running: dict[str, asyncio.Future[ToolResult]] = {}

    async def __call__(self, call: Call, call_next: CallNext) -> ToolResult:
        """Return the cached answer, or run the call and cache its answer if that is allowed.

        Identical concurrent calls share the first call's result or error. If the first is
        cancelled, asked the user, or failed with an error of its own caller (`_CALLER_ERRORS`), a
        waiting call runs instead.
        """
        if not call.limits.cache_ttl:
            result: ToolResult = await call_next(call)
            return result
        key = _key(call)
        while True:
            if kept := await self._store.get(key):
                call.record.is_cached = True
                return kept
            if not (running := self._running.get(key)):
                return await self._call(key, call, call_next)
            # Not `await running`: a cancelled caller would cancel the future of all callers.
            await asyncio.wait([running])
            if not running.cancelled():
                result = running.result()
                call.record.is_cached = True
                return result

    async def _call(self, key: str, call: Call, call_next: CallNext) -> ToolResult:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            result: ToolResult = await call_next(call)
            # An answer that depends on the user's reply does not fit other calls.
            if not call.context.has_elicited:
                running.set_result(result)
                if not result.is_error:
                    # Shield the write: if the deadline expires during it, the call must still
                    # return its answer.
                    with anyio.CancelScope(shield=True):
                        await self._store.put(key, result, call.limits.cache_ttl)
        except Exception as exc:
            if not (call.context.has_elicited or isinstance(exc, _CALLER_ERRORS)):
                running.set_exception(exc)
                running.exception()  # else asyncio warns of an unread exception
            raise
        finally:
            del self._running[key]
            # Without a result, this wakes the callers that wait for one.
            running.cancel()
        return result

    @cached_property
    def _store(self) -> _RedisAnswers | _MemoryAnswers:
        return _RedisAnswers(self._redis) if self._redis else _MemoryAnswers()


class _MemoryAnswers:
    """Answers of this process; the least recently used are dropped when they grow too large."""

    def __init__(self) -> None:
        from cachetools import TLRUCache  # noqa: PLC0415  - few configurations cache

        self._kept: TLRUCache[str, tuple[ToolResult, float]] = TLRUCache(
            _MAX_BYTES,
            ttu=lambda _key, kept, now: now + kept[1],
            timer=time.monotonic,
            getsizeof=lambda kept: _size(kept[0]),
        )

    async def get(self, key: str) -> ToolResult | None:
        kept = self._kept.get(key)
        return kept[0] if kept else None

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        if _size(answer) <= _MAX_BYTES:
            self._kept[key] = (answer, ttl)


class _RedisAnswers:
    """Answers that several processes share; when Redis fails, calls run without a cache."""

    def __init__(self, shared: SharedRedis) -> None:
        from redis import asyncio as redis  # noqa: PLC0415  - an extra

        self._shared = shared
        self._redis: Any = redis.Redis(connection_pool=shared.pool)
        self._answers = TypeAdapter(ToolResult)

    async def get(self, key: str) -> ToolResult | None:
        async def read() -> ToolResult | None:
            kept: bytes | None = await self._redis.get(_PREFIX + key)
            return self._answers.validate_json(kept) if kept else None

        return await self._shared.ask(read, "cached answers cannot be read")

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        async def write() -> None:
            milliseconds = max(1, int(ttl * 1000))
            await self._redis.set(_PREFIX + key, self._answers.dump_json(answer), px=milliseconds)

        await self._shared.ask(write, "an answer cannot be cached")


def _size(answer: ToolResult) -> int:
    """Estimate the size in bytes; text counts twice because the structured content repeats it."""
    return 2 * len(answer.text) + len(pydantic_core.to_json(answer.content))


def _key(call: Call) -> str:
    """Return a digest of tool, arguments (order ignored) and caller.

    Leave out the caller if the cache scope is public.
    """
    caller = None if call.limits.cache_scope == "public" else call.context.caller
    plain = pydantic_core.to_jsonable_python(call.keywords, fallback=repr)
    text = json.dumps([call.item.declared, caller, plain], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
