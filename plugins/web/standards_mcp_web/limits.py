"""Rate limit of requests to a provider."""

from __future__ import annotations

import time
from collections import deque
from typing import Final

from .errors import LimitedError

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


# The host's rate limits count for each caller, but all callers share one account with the provider.
class Limits:
    """Count requests in a moving window, and observe pauses that the provider demands.

    Args:
        rate: Maximum number of requests in a time span, such as ``10/minute``.
    """

    def __init__(self, rate: str) -> None:
        count, _, span = rate.partition("/")
        self._rate, self._seconds = rate, _SECONDS[span]
        self._times = deque[float](maxlen=int(count))
        self._paused_until = 0.0

    def pause(self, seconds: float) -> None:
        """Forbid requests for some seconds."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def take(self, provider: str) -> None:
        """Count a request before it is sent.

        Raises:
            LimitedError: The request is not allowed now.
        """
        now = time.monotonic()
        if self._paused_until > now:
            wait = self._paused_until - now
            raise LimitedError(f"The quota at {provider} is used up", wait)
        if self._free_at() > now:
            wait = self._free_at() - now
            raise LimitedError(f"Web search is limited to {self._rate}", wait)
        self._times.append(now)

    def are_reached(self) -> bool:
        """Return True if no request is allowed now."""
        return max(self._paused_until, self._free_at()) > time.monotonic()

    def _free_at(self) -> float:
        """Return the time from which the window has room for a request."""
        is_full = len(self._times) == self._times.maxlen
        return self._times[0] + self._seconds if is_full else 0
