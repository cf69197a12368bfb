"""Connects to the Redis that several processes share."""

from __future__ import annotations

from typing import Any, Final, cast

from standards_mcp.errors import ConfigError

_TIMEOUT: Final = 2.0  # seconds for one answer, before the call goes on without it


def redis_connections(url: str) -> Any:
    """Return a pool that connects when it is first used, and again after it was disconnected.

    Args:
        url: A ``redis://`` or ``rediss://`` URL.

    Raises:
        ConfigError: The package for it is not installed, or the URL has a wrong option.
    """
    try:
        from redis import asyncio as redis  # noqa: PLC0415  - an extra
    except ImportError:
        raise ConfigError(
            "[tools] storage needs the package redis; install standards-mcp[redis], or remove it"
        ) from None
    timeouts = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
    try:
        return cast("Any", redis.ConnectionPool).from_url(url, **timeouts)
    except ValueError as exc:
        raise ConfigError(f"[tools] storage: {exc}; correct the URL") from None
