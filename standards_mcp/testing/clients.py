"""A client of the official SDK, connected to a plugin in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client

from standards_mcp._utils.exceptions import leaves
from standards_mcp.host import Host
from standards_mcp.plugin import Plugin
from standards_mcp.server.server import build_server

from . import Connect, Services
from .hosts import PluginUnderTest


def connecting(folder: Path) -> Connect:
    """Return a function that serves a plugin, with its state in *folder*; see `Connect`."""

    @asynccontextmanager
    async def connect(  # noqa: PLR0913  - see `Connect`
        plugin_type: type[Plugin[Any]],
        /,
        *,
        name: str,
        generation: str = "auto",
        beside: Mapping[str, type[Plugin[Any]]] | None = None,
        services: Services | None = None,
        config: Mapping[str, Any] | None = None,
        client: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncGenerator[Client]:
        _expect_asyncio()
        tested = PluginUnderTest(
            plugin_type, name, settings, beside or {}, config or {}, services or {}
        )
        host = tested.host(folder)
        host.load()
        async with connected(host, generation, client or {}) as made:
            yield made

    return connect


@asynccontextmanager
async def connected(
    host: Host, generation: str, options: Mapping[str, Any]
) -> AsyncGenerator[Client]:
    """Start a host that has loaded its plugins, and connect a client to it.

    Args:
        options: More arguments of the SDK's ``Client``.
    """
    arguments: dict[str, Any] = {"mode": generation, "cache": None, **options}
    try:
        async with Client(build_server(host, "0"), **arguments) as client:
            yield client
    except BaseExceptionGroup as group:
        # The SDK's task groups wrap the exception of a plugin, or of the test itself.
        causes = leaves(group)
        raise causes[0] if len(causes) == 1 else group from None


def _expect_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "plugins run on asyncio. For anyio's pytest plugin, define a fixture anyio_backend "
            "that returns 'asyncio'."
        ) from None
