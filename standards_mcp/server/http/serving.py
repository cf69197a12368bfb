"""The transport over HTTP: run uvicorn with the app until the last answer."""

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
from standards_mcp.server.audit import audited
from standards_mcp.server.reload import Reloading
from standards_mcp.server.server import HostServer
from standards_mcp.server.tracing import traced

from .app import Service, build_service
from .authorization import Principals
from .listening import url_of
from .wire import BoundedProtocol

log = logging.getLogger(__name__)

CLOSING_SECONDS: Final = 2.0


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that leaves signals to `run`, and reports when it accepts connections."""

    def __init__(self, config: uvicorn.Config, on_open: Callable[[], None]) -> None:
        super().__init__(config)
        self.servers = list[asyncio.Server]()  # the base class sets it only at the start
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
    """Serve over HTTP until cancelled, then finish the calls in flight.

    Args:
        on_listening: Called when the service accepts requests.
        reloading: The sources of the configuration, for changes on the admin page.

    Raises:
        StandardsMcpError: The audit log is required and cannot be written, or the exporter of
            traces is not installed.
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
    # Without "none", uvicorn would accept WebSockets if a package for them is installed.
    config = uvicorn.Config(
        service.app,
        http=Protocol,
        ws="none",
        lifespan="off",
        # Any client could send these headers, so only the ones of trusted proxies count.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        log_config=None,
        access_log=False,
        server_header=False,
    )
    cancelled = asyncio.Event()
    # In its own task, so that cancelling this one does not cancel the calls in flight.
    serving = asyncio.create_task(
        _serve_until(cancelled, _Uvicorn(config, on_open), service, listening, drain)
    )
    try:
        await asyncio.shield(serving)
    finally:
        cancelled.set()
        with anyio.CancelScope(shield=True):
            await serving


async def _serve_until(
    cancelled: asyncio.Event,
    web: uvicorn.Server,
    service: Service,
    listening: socket.socket,
    drain: float,
) -> None:
    async with service.sessions.run():
        serving = asyncio.create_task(web.serve([listening]))
        await cancelled.wait()
        for port in web.servers:
            port.close()  # uvicorn checks `should_exit` only from time to time
        web.should_exit = True
        # Calls end before sessions and streams, because uvicorn's own limit counts open streams as
        # calls.
        if left := await service.in_flight.end(drain):
            log.warning("calls are given up", extra={"calls": left, "seconds": drain})
    service.tokens.close()
    await asyncio.wait([serving], timeout=CLOSING_SECONDS)
    web.force_exit = True
    await serving
