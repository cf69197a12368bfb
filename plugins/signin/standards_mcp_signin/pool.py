"""The connections of a server's users: one for each, because a session belongs to one user."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from standards_mcp import ApiError

MAX_CONNECTIONS: Final = 100
_IDLE_SECONDS: Final = 600.0


@dataclass(slots=True)
class _Entry:
    connection: Any
    users: int = 0
    used_at: float = 0.0


class Pool:
    """Open connections by the keys of their users, with a limit.

    Args:
        server: The server's name in errors.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._entries = OrderedDict[str, _Entry]()

    @asynccontextmanager
    async def connection(self, key: str, connect: Callable[[], Any]) -> AsyncGenerator[Any]:
        """Yield the connection of a user, which stays open during the body.

        Raises:
            ApiError: All connections are in use.
        """
        if key not in self._entries:
            self._entries[key] = _Entry(connect())
        entry = self._entries[key]
        self._entries.move_to_end(key)
        entry.users += 1
        try:
            await self._close_idle()
            yield entry.connection
        finally:
            entry.users, entry.used_at = entry.users - 1, time.monotonic()

    async def _close_idle(self) -> None:
        """Close connections that nobody used for a while, and the oldest of too many."""
        excess, overdue = len(self._entries) - MAX_CONNECTIONS, time.monotonic() - _IDLE_SECONDS
        idle = [(key, entry) for key, entry in self._entries.items() if not entry.users]
        if excess > len(idle):
            raise ApiError(f"Too many users call server {self._server!r} now. Try again later.")
        closed = [
            key for at, (key, item) in enumerate(idle) if at < excess or item.used_at < overdue
        ]
        for entry in [self._entries.pop(key) for key in closed]:
            await entry.connection.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        while self._entries:
            await self._entries.popitem()[1].connection.aclose()
