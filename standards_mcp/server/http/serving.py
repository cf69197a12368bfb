"""The transport over HTTP: uvicorn with the app, from the open socket to the last answer."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.server.server import HostServer

from .app import MCP, App, build_app
from .authorization import Tokens
from .guards import LOOPBACK
from .health import Health

log = logging.getLogger(__name__)

_CLOSING_SECONDS: Final = 2.0


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the run loop."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def check_exposure(settings: HttpSettings) -> None:
    """Refuse to let anybody in by accident.

    Raises:
        ConfigError: The service would listen beyond this machine, and ask nobody who they are.
    """
    if settings.host in LOOPBACK or settings.auth.is_required or settings.allowed_hosts:
        return
    raise ConfigError(
        f"[server] host is {settings.host!r}, and anybody who reaches it could use the service."
        " Make a token with `standards-mcp auth token new NAME`, or name the hosts under which it"
        " is reached in [server] allowed_hosts; --insecure serves everybody"
    )


def listen(settings: HttpSettings) -> socket.socket:
    """Return a socket that listens at the address of the settings.

    Raises:
        StandardsMcpError: The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server(
            (settings.host, settings.port), family=family, backlog=2048, reuse_port=False
        )
    except OSError as exc:
        where = f"{settings.host}:{settings.port}"
        raise StandardsMcpError(
            f"cannot listen at {where}: {exc.strerror}; choose another [server] host or --port"
        ) from None


async def serve_http(server: HostServer, host: Host, listening: socket.socket) -> None:
    """Serve MCP and health over HTTP until cancelled; calls in flight are then answered first."""
    settings = host.settings.server
    manager = StreamableHTTPSessionManager(
        server,
        json_response=settings.json_response,
        stateless=settings.stateless,
        session_idle_timeout=settings.session_idle,
        max_request_body_size=settings.max_request_bytes,
        max_sessions=settings.max_sessions,
    )
    health = Health(host, server.version or "")
    was_required = settings.auth.is_required

    def is_required() -> bool:
        # Revoking the last token must not let everybody in.
        return was_required or host.settings.server.auth.is_required

    verifier = Tokens(lambda: host.settings.server.auth)
    app = build_app(manager, settings, verifier, is_required, health.routes())
    web = _Uvicorn(
        uvicorn.Config(
            app.asgi,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
        )
    )
    told = asyncio.Event()
    # In a task of its own, which the cancellation of this one does not reach: calls that are in
    # flight run below it.
    serving = asyncio.create_task(_serve_until(told, web, manager, app, listening, settings.drain))
    try:
        await asyncio.shield(serving)
    finally:
        health.is_draining = True
        told.set()
        with anyio.CancelScope(shield=True):
            await serving


async def _serve_until(
    told: asyncio.Event,
    web: uvicorn.Server,
    manager: StreamableHTTPSessionManager,
    app: App,
    listening: socket.socket,
    drain: float,
) -> None:
    serving = asyncio.create_task(web.serve([listening]))
    async with manager.run():
        log.info("listening", extra={"url": url_of(listening)})
        await told.wait()
        web.should_exit = True  # it closes the port and waits for what is being answered
        if left := await app.in_flight.drained(drain):
            log.warning("calls are given up", extra={"calls": left, "seconds": drain})
    # Streams that clients listen to have ended with the sessions.
    await asyncio.wait([serving], timeout=_CLOSING_SECONDS)
    web.force_exit = True
    await serving


def url_of(listening: socket.socket) -> str:
    """Return the address of MCP at a socket."""
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP}"
