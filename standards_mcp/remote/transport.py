"""What a connection runs over, and for how long it waits for what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final


class Transport(ABC):
    """One connection to a process or to an address.

    Attributes:
        exit_reason: Why the connection ended, or an empty string.
    """

    exit_reason: str = ""

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[Any]:
        """Return the streams of the connection, for as long as the context is open.

        Raises:
            ApiError: There is no connection to be had.
        """

    def explain(self, error: BaseException) -> str:
        """Return what is wrong and what to do, or an empty string where nothing more is known."""
        del error
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds that processes and servers are given.

    Attributes:
        retry: Until one that could not be started with the host is tried again.
        listen: Until a stream of changes that ended is opened again.
        stuck: For an isolated process to answer, and for a function to return, after a call was
            cancelled.
        drain: For other calls to end before a stuck process is ended; one may be asking a user.
    """

    retry: float = 60.0
    listen: float = 10.0
    stuck: float = 5.0
    drain: float = 30.0


DEFAULT_TIMING: Final = Timing()
