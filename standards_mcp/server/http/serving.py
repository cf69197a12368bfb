"""The transport over HTTP: uvicorn with the app, from the open socket to the last answer."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

import anyio
import uvicorn

from standards_mcp.config.models.http import AuthSettings, HttpSettings
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.server.server import HostServer

from .app import build_app
from .authorization import Principals, Tokens, is_revoked
from .guards import MCP, InFlight, is_loopback
from .health import Health
from .sessions import Sessions

log = logging.getLogger(__name__)

CLOSING_SECONDS: Final = 2.0
_BACKLOG: Final = 2048


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


def check_exposure(settings: HttpSettings) -> None:
    """Refuse to let anybody in by accident.

    Raises:
        ConfigError: The service would listen beyond this machine, and ask nobody who they are.
    """
    if is_loopback(settings.host) or settings.auth.is_required or settings.allowed_hosts:
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
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol, by which asyncio knows that answers must not be held back (Nagle): a
        # call would take 40 ms.
        listening = socket.socket(family, kind, protocol)
        with ExitStack() as undo:
            undo.callback(listening.close)
            if os.name != "nt":  # there, two servers could then have one port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
            undo.pop_all()
            return listening
    except OSError as exc:
        where = f"{settings.host}:{settings.port}"
        why = exc.strerror if isinstance(exc, socket.gaierror) else os.strerror(exc.errno or 0)
        raise StandardsMcpError(
            f"cannot listen at {where}: {why}; choose another [server] host or --port"
        ) from None


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
    health = Health(host, server.version or "", principals.of_request)
    if not is_required() and (settings.allowed_hosts or not is_loopback(settings.host)):
        log.warning("everybody who reaches the service may use it: it asks for no token")
    app = build_app(manager, settings, Tokens(auth), is_required, health.routes())

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


def url_of(listening: socket.socket) -> str:
    """Return the address of MCP at a socket."""
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP}"
