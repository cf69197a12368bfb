"""Counts calls against rate limits, in this process or in Redis."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.errors import RateLimitedError

if TYPE_CHECKING:
    from limits.aio.strategies import MovingWindowRateLimiter

log = logging.getLogger(__name__)


_MOST_CALLERS: Final = 10_000  # of all tools together
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


class RateLimits:
    """A moving window for each tool and caller.

    Args:
        pool: Connections to a Redis where several processes share the counts, see
            `redis_connections`; None: this process counts alone.
    """

    def __init__(self, pool: Any = None) -> None:
        self._own: dict[tuple[str, str, str], deque[float]] = {}
        self._pool = pool

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call unless its tool was called too often.

        A call that goes on after a question was counted when it began.

        Raises:
            RateLimitedError: It was.
        """
        limit, item = call.limits.rate_limit, call.item
        if limit and not call.context.is_continuation:
            seconds = await self.wait(limit, item.declared, call.context.caller)
            if seconds:
                raise RateLimitedError(
                    f"{item.published} is limited to {limit}. Try again in {seconds} s."
                )
        return await call_next(call)

    @cached_property
    def _shared(self) -> MovingWindowRateLimiter | None:
        return None if self._pool is None else _limiter(self._pool)

    async def wait(self, limit: str, tool: str, caller: str) -> int:
        """Count a call and return 0, or how many seconds to wait before the next one.

        When the shared counts cannot be reached, this process counts for itself.

        Args:
            limit: For example ``60/minute``.
        """
        if self._shared:
            try:
                return await _wait(self._shared, limit, tool, caller)
            except Exception as exc:  # noqa: BLE001  - whatever the network and the server do
                log.warning("shared rate limits cannot be reached", extra={"reason": str(exc)})
        return self._own_wait(limit, tool, caller)

    def _own_wait(self, limit: str, tool: str, caller: str) -> int:
        """Do the same here: the storage that `limits` has for this costs a third of a call."""
        count, _, span = limit.partition("/")
        now, seconds = time.monotonic(), _SECONDS[span]
        calls = self._calls((limit, tool, caller))
        while calls and calls[0] <= now - seconds:
            calls.popleft()
        if len(calls) >= int(count):
            return max(1, math.ceil(calls[0] + seconds - now))
        calls.append(now)
        return 0

    def _calls(self, key: tuple[str, str, str]) -> deque[float]:
        """Return the calls that count; who has been silent for longest is forgotten, if need be."""
        calls = self._own[key] = self._own.pop(key, deque())
        if len(self._own) > _MOST_CALLERS:
            del self._own[next(iter(self._own))]
        return calls


def _limiter(pool: Any) -> MovingWindowRateLimiter:
    # A quarter of a second to import, and few configurations share limits.
    from limits.aio.strategies import MovingWindowRateLimiter  # noqa: PLC0415
    from limits.storage import storage_from_string  # noqa: PLC0415

    options: dict[str, Any] = {"implementation": "redispy", "connection_pool": pool}
    storage: Any = storage_from_string("async+redis://localhost:6379", **options)
    return MovingWindowRateLimiter(storage)


async def _wait(limiter: MovingWindowRateLimiter, limit: str, tool: str, caller: str) -> int:
    from limits import parse  # noqa: PLC0415

    item = parse(limit)
    if await limiter.hit(item, tool, caller):
        return 0
    window = await limiter.get_window_stats(item, tool, caller)
    return max(1, math.ceil(window.reset_time - time.time()))
