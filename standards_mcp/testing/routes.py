"""An HTTP client for the routes of a plugin, in one process and without a port."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from standards_mcp.calls.context import Principal
from standards_mcp.contributions.routes import PREFIX
from standards_mcp.host import Host
from standards_mcp.plugin import Plugin
from standards_mcp.server.http.bodies import refused
from standards_mcp.server.http.plugin_routes import PluginRoutes

from . import ConnectHttp, Services
from .hosts import PluginUnderTest

CALLER = "tester"


def connecting_http(folder: Path) -> ConnectHttp:
    """Return a function that serves the routes of plugins, with their state in *folder*."""

    @asynccontextmanager
    async def connect(
        plugin_type: type[Plugin[Any]],
        /,
        *,
        name: str,
        scopes: Collection[str] | None = None,
        beside: Mapping[str, type[Plugin[Any]]] | None = None,
        services: Services | None = None,
        config: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncGenerator[httpx2.AsyncClient]:
        tested = PluginUnderTest(
            plugin_type, name, settings, beside or {}, config or {}, services or {}
        )
        host = tested.host(folder)
        host.load()
        async with host.running(), route_client(host, name, scopes) as client:
            yield client

    return connect


@asynccontextmanager
async def route_client(
    host: Host, plugin: str, scopes: Collection[str] | None = None
) -> AsyncGenerator[httpx2.AsyncClient]:
    """Open a client for the routes of one plugin of a running host."""
    principal = Principal(CALLER, scopes=None if scopes is None else frozenset(scopes))
    routes = PluginRoutes(host, lambda _: principal).routes()
    app = Starlette(routes=routes, exception_handlers={HTTPException: refused})
    transport = httpx2.ASGITransport(app)
    url = f"http://localhost{PREFIX}/{plugin}"
    async with httpx2.AsyncClient(transport=transport, base_url=url) as client:
        yield client
