"""When the provider may be asked."""

from __future__ import annotations

import time
from collections import deque
from typing import Final

from .errors import LimitedError

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


class Limits:
    """Counts requests in a moving window, and keeps the pauses that the provider wants.

    Args:
        rate: How many requests are sent in which time, such as ``10/minute``.
    """

    def __init__(self, rate: str) -> None:
        count, _, span = rate.partition("/")
        self._rate, self._seconds = rate, _SECONDS[span]
        self._times = deque[float](maxlen=int(count))
        self._paused_until = 0.0

    def pause(self, seconds: float) -> None:
        """Let nothing be sent for so long."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def take(self, provider: str) -> None:
        """Count a request that is sent now.

        Raises:
            LimitedError: It must not be sent.
        """
        now = time.monotonic()
        if self._paused_until > now:
            wait = self._paused_until - now
            raise LimitedError(f"{provider} takes no more searches for now", wait)
        if self._until_free() > now:
            wait = self._until_free() - now
            raise LimitedError(f"Web search is limited to {self._rate}", wait)
        self._times.append(now)

    def are_reached(self) -> bool:
        """Tell whether nothing may be sent now."""
        return max(self._paused_until, self._until_free()) > time.monotonic()

    def _until_free(self) -> float:
        is_full = len(self._times) == self._times.maxlen
        return self._times[0] + self._seconds if is_full else 0
