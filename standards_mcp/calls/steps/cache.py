"""Keeps answers of tools for a while, in this process or in Redis."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Protocol

import pydantic_core
from pydantic import TypeAdapter

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.plugin import ToolResult

log = logging.getLogger(__name__)


_MAX_BYTES: Final = 64 * 1024 * 1024
_PREFIX: Final = "standards-mcp:answer:"


class AnswerStore(Protocol):
    """Where answers are kept, each for its own time."""

    async def get(self, key: str) -> ToolResult | None:
        """Return what is kept under *key*, or None."""
        ...

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        """Keep *answer* for *ttl* seconds."""
        ...


class Cache:
    """Keeps answers by tool, arguments and caller; equal calls at one time are one call.

    Args:
        pool: Connections to a Redis where several processes share answers, see
            `redis_connections`; None: this process keeps its own.
    """

    def __init__(self, pool: Any = None) -> None:
        self._pool = pool
        self._running: dict[str, asyncio.Future[ToolResult]] = {}

    async def __call__(self, call: Call, call_next: CallNext) -> ToolResult:
        """Return the answer that is kept, or that of the call, which is kept if it may be.

        Callers that come while the call runs get its answer, also a failure; if it is cancelled,
        one of those who wait calls in its place.
        """
        if not call.limits.cache_ttl:
            result: ToolResult = await call_next(call)
            return result
        key = answer_key(call.item.declared, call.keywords, call.context.caller)
        while True:
            if kept := await self._get(key):
                call.record.is_cached = True
                return kept
            if not (running := self._running.get(key)):
                return await self._call(key, call, call_next)
            await asyncio.wait([running])
            if not running.cancelled():
                result = running.result()
                call.record.is_cached = True
                return result

    async def _call(self, key: str, call: Call, call_next: CallNext) -> ToolResult:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            result: ToolResult = await call_next(call)
            # An answer that depends on what a user said is of this call alone.
            if not result.is_error and not call.context.has_elicited:
                await self._put(key, result, call.limits.cache_ttl)
            running.set_result(result)
        except Exception as exc:
            running.set_exception(exc)
            running.exception()  # nobody may wait for it, which is no reason for a warning
            raise
        finally:
            del self._running[key]
            running.cancel()
        return result

    @cached_property
    def _store(self) -> AnswerStore:
        return RedisAnswers(self._pool) if self._pool else MemoryAnswers()

    async def _get(self, key: str) -> ToolResult | None:
        try:
            return await self._store.get(key)
        except Exception as exc:  # noqa: BLE001  - a cache that fails costs time, not the answer
            log.warning("cached answers cannot be read", extra={"reason": str(exc)})
            return None

    async def _put(self, key: str, result: ToolResult, ttl: float) -> None:
        try:
            await self._store.put(key, result, ttl)
        except Exception as exc:  # noqa: BLE001  - as above
            log.warning("an answer cannot be cached", extra={"reason": str(exc)})


class MemoryAnswers:
    """Answers of this process, the oldest dropped where they grow too large."""

    def __init__(self) -> None:
        from cachetools import TLRUCache  # noqa: PLC0415  - few configurations cache

        self._kept: TLRUCache[str, tuple[ToolResult, float]] = TLRUCache(
            _MAX_BYTES,
            ttu=lambda _key, kept, now: now + kept[1],
            timer=time.monotonic,
            getsizeof=lambda kept: _size(kept[0]),
        )

    async def get(self, key: str) -> ToolResult | None:
        """Return what is kept. See `AnswerStore`."""
        kept = self._kept.get(key)
        return kept[0] if kept else None

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        """Keep an answer. See `AnswerStore`."""
        if _size(answer) <= _MAX_BYTES:
            self._kept[key] = (answer, ttl)


class RedisAnswers:
    """Answers that several processes share.

    Args:
        pool: Connections, see `redis_connections`.
    """

    def __init__(self, pool: Any) -> None:
        from redis import asyncio as redis  # noqa: PLC0415  - an extra

        self._redis: Any = redis.Redis(connection_pool=pool)
        self._answers = TypeAdapter(ToolResult)

    async def get(self, key: str) -> ToolResult | None:
        """Return what is kept. See `AnswerStore`."""
        kept: bytes | None = await self._redis.get(_PREFIX + key)
        return self._answers.validate_json(kept) if kept else None

    async def put(self, key: str, answer: ToolResult, ttl: float) -> None:
        """Keep an answer. See `AnswerStore`."""
        milliseconds = max(1, int(ttl * 1000))
        await self._redis.set(_PREFIX + key, self._answers.dump_json(answer), px=milliseconds)


def _size(answer: ToolResult) -> int:
    """Return about how many bytes an answer takes: its structure is its text once more."""
    return 2 * len(answer.text) + len(pydantic_core.to_json(answer.content))


def answer_key(tool: str, arguments: Mapping[str, Any], caller: str) -> str:
    """Return a digest that equal calls of one caller share, whatever the order of arguments."""
    plain = pydantic_core.to_jsonable_python(arguments, fallback=repr)
    call = json.dumps([tool, caller, plain], sort_keys=True)
    return hashlib.sha256(call.encode()).hexdigest()
