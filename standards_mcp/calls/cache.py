"""Keeps answers of tools for a while, in this process or in Redis."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import pydantic_core
from pydantic import TypeAdapter

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


class AnswerCache:
    """Answers by tool, arguments and caller; equal calls at one time are one call."""

    def __init__(self, store: AnswerStore) -> None:
        self._store = store
        self._running: dict[str, asyncio.Future[ToolResult]] = {}

    async def answer(
        self,
        key: str,
        ttl: float,
        call: Callable[[], Awaitable[ToolResult]],
        keeps: Callable[[ToolResult], bool],
    ) -> ToolResult:
        """Return the answer kept under *key*, or that of *call*, which is kept if it *keeps* it.

        Who comes while the call runs gets what it comes to, a failure too; if it is cancelled, one
        of those who wait calls in its place.
        """
        while True:
            if kept := await self._get(key):
                return kept
            if not (running := self._running.get(key)):
                return await self._call(key, ttl, call, keeps)
            await asyncio.wait([running])
            if not running.cancelled():
                return running.result()

    async def _call(
        self,
        key: str,
        ttl: float,
        call: Callable[[], Awaitable[ToolResult]],
        keeps: Callable[[ToolResult], bool],
    ) -> ToolResult:
        running = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            result = await call()
            if keeps(result):
                await self._put(key, result, ttl)
            running.set_result(result)
        except Exception as exc:
            running.set_exception(exc)
            running.exception()  # nobody may wait for it, which is no reason for a warning
            raise
        finally:
            del self._running[key]
            running.cancel()
        return result

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
