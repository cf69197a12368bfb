"""What a connection runs over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any


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
