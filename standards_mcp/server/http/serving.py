"""The transport over HTTP: uvicorn with the app, from the open socket to the last answer."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

import anyio
import uvicorn

from standards_mcp.config.models.http import AuthSettings
from standards_mcp.host import Host
from standards_mcp.server.server import HostServer

from .app import build_app
from .authorization import Principals, Tokens, is_revoked
from .guards import InFlight
from .health import Health
from .plugin_routes import PluginRoutes
from .rest import Rest
from .sessions import Sessions
from .sockets import is_local, url_of

log = logging.getLogger(__name__)

CLOSING_SECONDS: Final = 2.0


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the run loop, and tells when it has opened its port."""

    def __init__(self, config: uvicorn.Config, on_open: Callable[[], None]) -> None:
        super().__init__(config)
        self.servers = list[asyncio.Server]()  # the end may come before there are any
        self._on_open = on_open

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_open()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve_http(
    server: HostServer,
    host: Host,
    listening: socket.socket,
    principals: Principals,
    on_listening: Callable[[], None] | None = None,
) -> None:
    """Serve MCP and health over HTTP until cancelled; calls in flight are then answered first.

    Args:
        on_listening: Called when requests are answered.
    """
    settings = host.settings.server
    manager = Sessions(server, settings)
    was_required = False

    def auth() -> AuthSettings:
        return host.settings.server.auth

    def is_required() -> bool:
        nonlocal was_required
        # Revoking the last token must not let everybody in.
        was_required = was_required or auth().is_required
        return was_required

    host.on_taken_over.append(lambda: manager.close_where(partial(is_revoked, auth())))
    version, principal_of = server.version or "", principals.of_request
    routes = Health(host, version, principal_of).routes()
    routes += PluginRoutes(host, principal_of).routes()
    if settings.rest:
        routes += Rest(host, version, principal_of, is_required).routes()
    if not is_required() and (settings.allowed_hosts or not is_local(settings)):
        log.warning("everybody who reaches the service may use it: it asks for no token")
    app = build_app(manager, settings, Tokens(auth), is_required, routes)

    def on_open() -> None:
        log.info("listening", extra={"url": url_of(listening), "pid": os.getpid()})
        if on_listening:
            on_listening()

    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, server_header=False
    )
    web = _Uvicorn(config, on_open)
    told = asyncio.Event()
    # In a task of its own, which the cancellation of this one does not reach: calls that are in
    # flight run below it.
    serving = asyncio.create_task(_serve_until(told, web, manager, app, listening, settings.drain))
    try:
        await asyncio.shield(serving)
    finally:
        told.set()
        with anyio.CancelScope(shield=True):
            await serving


async def _serve_until(
    told: asyncio.Event,
    web: uvicorn.Server,
    manager: Sessions,
    app: InFlight,
    listening: socket.socket,
    drain: float,
) -> None:
    async with manager.run():
        serving = asyncio.create_task(web.serve([listening]))
        await told.wait()
        for each in web.servers:
            each.close()  # uvicorn looks whether it should exit only now and then
        web.should_exit = True
        if left := await app.end(drain):
            log.warning("calls are given up", extra={"calls": left, "seconds": drain})
    await asyncio.wait([serving], timeout=CLOSING_SECONDS)
    web.force_exit = True
    await serving
