"""The transport over HTTP: uvicorn with the app, from the open socket to the last answer."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import anyio
import uvicorn

from standards_mcp.host import Host
from standards_mcp.server.operations.audit import audited
from standards_mcp.server.operations.tracing import traced
from standards_mcp.server.reload import Reloading
from standards_mcp.server.server import HostServer

from .authorization import Principals
from .service import Service, build_service
from .sockets import url_of
from .wire import BoundedProtocol

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
    reloading: Reloading | None = None,
) -> None:
    """Serve MCP and health over HTTP until cancelled; calls in flight are then answered first.

    Args:
        on_listening: Called when requests are answered.
        reloading: Where the configuration comes from, for the admin page to change it.

    Raises:
        StandardsMcpError: The audit log is required and cannot be written, or what exports traces
            is not installed.
    """

    def on_open() -> None:
        log.info("listening", extra={"url": url_of(listening), "pid": os.getpid()})
        if on_listening:
            on_listening()

    version = server.version or ""
    async with traced(host, "tcp", version):
        with audited(host, "http", version) as audit:
            service = build_service(server, host, principals, audit, reloading)
            await _serve(service, listening, host.settings.server.drain, on_open)


async def _serve(
    service: Service, listening: socket.socket, drain: float, on_open: Callable[[], None]
) -> None:
    class Protocol(BoundedProtocol):
        most_bytes = service.max_request_bytes

    proxies = service.trusted_proxies
    # No route speaks WebSocket, which uvicorn would take up wherever a package for it is installed.
    config = uvicorn.Config(
        service.app,
        http=Protocol,
        ws="none",
        lifespan="off",
        # What is not told by a proxy that is known could be told by anybody.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        log_config=None,
        access_log=False,
        server_header=False,
    )
    told = asyncio.Event()
    # In a task of its own, which the cancellation of this one does not reach: calls that are in
    # flight run below it.
    serving = asyncio.create_task(
        _serve_until(told, _Uvicorn(config, on_open), service, listening, drain)
    )
    try:
        await asyncio.shield(serving)
    finally:
        told.set()
        with anyio.CancelScope(shield=True):
            await serving


async def _serve_until(
    told: asyncio.Event,
    web: uvicorn.Server,
    service: Service,
    listening: socket.socket,
    drain: float,
) -> None:
    async with service.sessions.run():
        serving = asyncio.create_task(web.serve([listening]))
        await told.wait()
        for each in web.servers:
            each.close()  # uvicorn looks whether it should exit only now and then
        web.should_exit = True
        if left := await service.in_flight.end(drain):
            log.warning("calls are given up", extra={"calls": left, "seconds": drain})
    service.tokens.close()
    await asyncio.wait([serving], timeout=CLOSING_SECONDS)
    web.force_exit = True
    await serving
