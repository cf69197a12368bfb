"""Counts calls against rate limits, in this process or in Redis."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.calls.redis import SharedRedis
from standards_mcp.errors import RateLimitedError

if TYPE_CHECKING:
    from limits.aio.strategies import MovingWindowRateLimiter

_MOST_CALLERS: Final = 10_000  # of all tools together
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


class RateLimits:
    """Counts calls in a moving window for each tool, prompt or resource and each caller.

    Args:
        redis: A Redis that several processes share; None: this process counts alone.
    """

    def __init__(self, redis: SharedRedis | None = None) -> None:
        self._own: dict[tuple[str, str, str], deque[float]] = {}
        self._redis = redis

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call unless what it calls was called too often.

        Raises:
            RateLimitedError: It was called too often.
        """
        await self.count(call)
        return await call_next(call)

    async def count(self, call: Call) -> None:
        """Count a call; one that continues after a question is not counted again.

        Raises:
            RateLimitedError: There were too many calls.
        """
        item = call.item
        # Each answer of a user repeats the call. With `1/minute` nobody could ever answer.
        if not call.context.is_continuation:
            counted, limits = f"{item.kind} {item.declared}", call.limits.rate_limits
            await self.count_for(call.context.caller, counted, item.published, limits)

    async def count_for(
        self, caller: str, counted: str, published: str, limits: Sequence[str]
    ) -> None:
        """Count a call that may have no item. See `count`."""
        seconds, limit = await self.wait(limits, counted, caller) if limits else (0, "")
        if seconds:
            raise RateLimitedError(
                f"{published} is limited to {limit}. Try again in {seconds} s.",
                retry_after=seconds,
            )

    @cached_property
    def _shared(self) -> MovingWindowRateLimiter:
        return _limiter(self._redis.pool if self._redis else None)

    async def wait(self, limits: Sequence[str], counted: str, caller: str) -> tuple[int, str]:
        """Return how many seconds a call has to wait, and for which limit; count it if none.

        A call that one limit refuses counts against none of them. While the shared counts cannot
        be reached, this process counts for itself.

        Args:
            limits: For example ``60/minute``.
            counted: What is called.
        """
        if self._redis:
            question = partial(_wait, self._shared, limits, counted, caller)
            found = await self._redis.ask(question, "shared rate limits cannot be reached")
            if found:
                return found
        return self._own_wait(limits, counted, caller)

    def _own_wait(self, limits: Sequence[str], counted: str, caller: str) -> tuple[int, str]:
        """Count in this process; the memory storage of `limits` would make calls a third slower."""
        now = time.monotonic()
        calls = {limit: self._calls((limit, counted, caller)) for limit in limits}
        longest = max((_seconds(limit, times, now), limit) for limit, times in calls.items())
        if not longest[0]:
            for times in calls.values():
                times.append(now)
        return longest

    def _calls(self, key: tuple[str, str, str]) -> deque[float]:
        """Return the times of earlier calls; with too many callers, one is forgotten."""
        # Removed and added again, so that the first key is the one that was silent for longest.
        calls = self._own[key] = self._own.pop(key, deque())
        if len(self._own) > _MOST_CALLERS:
            del self._own[next(iter(self._own))]
        return calls


def _seconds(limit: str, calls: deque[float], now: float) -> int:
    """Return how long a call has to wait, and forget the calls that no longer count."""
    count, _, span = limit.partition("/")
    while calls and calls[0] <= now - _SECONDS[span]:
        calls.popleft()
    return max(1, math.ceil(calls[0] + _SECONDS[span] - now)) if len(calls) >= int(count) else 0


def _limiter(pool: Any) -> MovingWindowRateLimiter:
    # A quarter of a second to import, and few configurations share limits.
    from limits.aio.strategies import MovingWindowRateLimiter  # noqa: PLC0415
    from limits.storage import storage_from_string  # noqa: PLC0415

    options: dict[str, Any] = {"implementation": "redispy", "connection_pool": pool}
    storage: Any = storage_from_string("async+redis://localhost:6379", **options)
    return MovingWindowRateLimiter(storage)


async def _wait(
    limiter: MovingWindowRateLimiter, limits: Sequence[str], counted: str, caller: str
) -> tuple[int, str]:
    from limits import parse  # noqa: PLC0415

    items = {limit: parse(limit) for limit in limits}
    # With one limit, `hit` alone both asks and counts.
    for ask in (limiter.test, limiter.hit) if len(items) > 1 else (limiter.hit,):
        for limit, item in items.items():
            if not await ask(item, counted, caller):
                window = await limiter.get_window_stats(item, counted, caller)
                return max(1, math.ceil(window.reset_time - time.time())), limit
    return 0, ""
