"""Connects to the Redis that several processes share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from standards_mcp._utils.installation import HOST, install_command
from standards_mcp.errors import ConfigError

log = logging.getLogger(__name__)

_REST_SECONDS: Final = 5.0
_T = TypeVar("_T")


class SharedRedis:
    """A Redis that costs little when it is gone: then nobody asks it for some seconds.

    Args:
        url: A ``redis://`` or ``rediss://`` URL.
        seconds: For one answer.

    Raises:
        ConfigError: The package ``redis`` is not installed, or the URL has a wrong option.
    """

    def __init__(self, url: str, seconds: float) -> None:
        self.pool = redis_connections(url, seconds)
        self._seconds = seconds
        self._is_gone, self._rests_until = False, 0.0
        self._asking = set[asyncio.Task[Any]]()

    async def ask(self, question: Callable[[], Awaitable[_T]], otherwise: str) -> _T | None:
        """Return the answer, or None where there is none in time.

        Args:
            otherwise: What the log says then.
        """
        if time.monotonic() < self._rests_until:
            return None
        # In a task of its own: a call whose time is up must not keep others from learning of it.
        asking = asyncio.create_task(self._ask(question, otherwise))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        if self._is_gone:  # nobody waits to know whether it is back
            self._rests_until = time.monotonic() + _REST_SECONDS
            return None
        return await asyncio.shield(asking)

    async def _ask(self, question: Callable[[], Awaitable[_T]], otherwise: str) -> _T | None:
        from redis import exceptions  # noqa: PLC0415  - an extra

        gone = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await question()
        except Exception as exc:  # noqa: BLE001  - whatever the network and the server do
            if not self._is_gone:
                log.warning(otherwise, extra={"reason": str(exc) or "it does not answer"})
            if isinstance(exc, gone):
                self._is_gone, self._rests_until = True, time.monotonic() + _REST_SECONDS
            return None
        if self._is_gone:
            log.warning("Redis answers again")
        self._is_gone, self._rests_until = False, 0.0
        return answer

    async def aclose(self) -> None:
        """Close the connections; a later question connects anew."""
        for each in self._asking:
            each.cancel()
        await self.pool.disconnect()


def redis_connections(url: str, seconds: float) -> Any:
    """Return a pool that connects when it is first used, and again after it was disconnected.

    Args:
        url: A ``redis://`` or ``rediss://`` URL.
        seconds: For one answer.

    Raises:
        ConfigError: The package ``redis`` is not installed, or the URL has a wrong option.
    """
    try:
        from redis import asyncio as redis  # noqa: PLC0415  - an extra
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            "[tools] storage needs the package redis; remove it, or run "
            f"`{install_command(HOST, 'redis')}`"
        ) from None
    timeouts = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    once_more = Retry(NoBackoff(), 1)  # a connection that was closed while nobody used it
    try:
        return cast("Any", redis.ConnectionPool).from_url(url, retry=once_more, **timeouts)
    except ValueError as exc:
        raise ConfigError(f"[tools] storage: {exc}; correct the URL") from None
