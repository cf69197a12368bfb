"""Where ids and times come from."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias

Clock: TypeAlias = Callable[[], str]
"""Gives the time, UTC, as 2026-01-01T00:00:00Z."""
_STARTS: Final = 2**32


class Ids(Protocol):
    """Gives ids, which mean nothing."""

    def new(self, prefix: str) -> str:
        """Return an id that begins with a prefix and a dash, and is never given again."""
        ...


class TimeIds:
    """Gives ids of the time in microseconds and a number.

    Processes that ask in the same microsecond begin to count at different numbers.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(secrets.randbelow(_STARTS))

    def new(self, prefix: str) -> str:
        """See `Ids.new`."""
        return f"{prefix}-{time.time_ns() // 1000}-{next(self._numbers)}"


class CountingIds:
    """Gives the ids 0, 1, 2 and so on, whatever their prefix: the same in each run."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def new(self, prefix: str) -> str:
        """See `Ids.new`."""
        return f"{prefix}-{next(self._numbers)}"


def utc_now() -> str:
    """Return the time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
