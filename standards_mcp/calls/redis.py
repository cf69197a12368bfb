"""Connects to the Redis that several processes share."""

from __future__ import annotations

from typing import Any, cast

from standards_mcp.errors import ConfigError


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
    except ImportError:
        raise ConfigError(
            "[tools] storage needs the package redis; install standards-mcp[redis], or remove it"
        ) from None
    timeouts = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    try:
        return cast("Any", redis.ConnectionPool).from_url(url, **timeouts)
    except ValueError as exc:
        raise ConfigError(f"[tools] storage: {exc}; correct the URL") from None
