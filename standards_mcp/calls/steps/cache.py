"""Caches answers of tools, in this process or in Redis."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Protocol

import anyio
import pydantic_core
from pydantic import TypeAdapter

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.calls.redis import SharedRedis
from standards_mcp.errors import CannotAskError, RateLimitedError
from standards_mcp.plugin import ToolResult

log = logging.getLogger(__name__)


_MAX_BYTES: Final = 64 * 1024 * 1024
_PREFIX: Final = "standards-mcp:answer:"
_OF_ONE_CALLER: Final = (RateLimitedError, CannotAskError)


class AnswerStore(Protocol):
    """Keeps answers, each for its own time."""

    async def get(self, key: str) -> ToolResult | None:
        """Return what is kept under *key*, or None."""
        ...

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        """Keep *answer* for *ttl* seconds."""
        ...


class Cache:
    """Caches answers by tool, arguments and caller; equal calls at one time run once.

    Args:
        redis: A Redis that several processes share; None: this process keeps its own answers.
    """

    def __init__(self, redis: SharedRedis | None = None) -> None:
        self._redis = redis
        self._running: dict[str, asyncio.Future[ToolResult]] = {}

    async def __call__(self, call: Call, call_next: CallNext) -> ToolResult:
        """Return the cached answer, or run the call and cache its answer where that is allowed.

        Equal calls that come meanwhile get the answer of the first, also a failure. If it has none
        for others, or is cancelled, one of the others runs instead.
        """
        if not call.limits.cache_ttl:
            result: ToolResult = await call_next(call)
            return result
        caller = None if call.limits.cache_scope == "public" else call.context.caller
        key = answer_key(call.item.declared, call.keywords, caller)
        while True:
            if kept := await self._store.get(key):
                call.record.is_cached = True
                return kept
            if not (running := self._running.get(key)):
                return await self._call(key, call, call_next)
            # Not `await running`: a caller that is cancelled would cancel the future of all.
            await asyncio.wait([running])
            if not running.cancelled():
                result = running.result()
                call.record.is_cached = True
                return result

    async def _call(self, key: str, call: Call, call_next: CallNext) -> ToolResult:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            result: ToolResult = await call_next(call)
            # An answer that depends on what a user said is not one for other calls.
            if not call.context.has_elicited:
                running.set_result(result)
                if not result.is_error:
                    await self._put(key, result, call.limits.cache_ttl)
        except Exception as exc:
            if not (call.context.has_elicited or isinstance(exc, _OF_ONE_CALLER)):
                running.set_exception(exc)
                running.exception()  # asyncio warns of an exception that nobody has read
            raise
        finally:
            del self._running[key]
            # Where it has no result for them, this wakes the callers that wait for it.
            running.cancel()
        return result

    @cached_property
    def _store(self) -> AnswerStore:
        return RedisAnswers(self._redis) if self._redis else MemoryAnswers()

    async def _put(self, key: str, result: ToolResult, ttl: float) -> None:
        try:
            # The answer is there, and must not be lost because keeping it takes long.
            with anyio.CancelScope(shield=True):
                await self._store.put(key, result, ttl)
        except Exception as exc:  # noqa: BLE001  - nor because it cannot be kept
            log.warning("an answer cannot be cached", extra={"reason": str(exc)})


class MemoryAnswers:
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
        """Return an answer. See `AnswerStore`."""
        kept = self._kept.get(key)
        return kept[0] if kept else None

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        """Keep an answer. See `AnswerStore`."""
        if _size(answer) <= _MAX_BYTES:
            self._kept[key] = (answer, ttl)


class RedisAnswers:
    """Answers that several processes share; a Redis that fails costs time, and no answer."""

    def __init__(self, shared: SharedRedis) -> None:
        from redis import asyncio as redis  # noqa: PLC0415  - an extra

        self._shared = shared
        self._redis: Any = redis.Redis(connection_pool=shared.pool)
        self._answers = TypeAdapter(ToolResult)

    async def get(self, key: str) -> ToolResult | None:
        """Return an answer. See `AnswerStore`."""

        async def read() -> ToolResult | None:
            kept: bytes | None = await self._redis.get(_PREFIX + key)
            return self._answers.validate_json(kept) if kept else None

        return await self._shared.ask(read, "cached answers cannot be read")

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        """Keep an answer. See `AnswerStore`."""

        async def write() -> None:
            milliseconds = max(1, int(ttl * 1000))
            await self._redis.set(_PREFIX + key, self._answers.dump_json(answer), px=milliseconds)

        await self._shared.ask(write, "an answer cannot be cached")


def _size(answer: ToolResult) -> int:
    """Return about how many bytes an answer takes; its structure repeats its text."""
    return 2 * len(answer.text) + len(pydantic_core.to_json(answer.content))


def answer_key(tool: str, arguments: Mapping[str, Any], caller: str | None) -> str:
    """Return a digest of a call by one caller, whatever the order of its arguments.

    Args:
        caller: None for an answer that all callers share.
    """
    plain = pydantic_core.to_jsonable_python(arguments, fallback=repr)
    call = json.dumps([tool, caller, plain], sort_keys=True)
    return hashlib.sha256(call.encode()).hexdigest()
