"""Opens what the service listens at: an address of the network, or a Unix socket."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from standards_mcp._utils.addresses import is_loopback
from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError, StandardsMcpError

from .guards import MCP

_BACKLOG: Final = 2048
_PROBE_SECONDS: Final = 1.0
_MODE: Final = 0o660
"""For the user and the group of the process, of which the proxy before it then is."""


def is_local(settings: HttpSettings) -> bool:
    """Tell whether only programs of this machine reach the service."""
    return settings.uds is not None or is_loopback(settings.host)


def is_private(settings: HttpSettings) -> bool:
    """Tell whether nobody but programs of this machine is meant to reach it, by a proxy either."""
    return is_local(settings) and not settings.allowed_hosts


def check_exposure(settings: HttpSettings) -> None:
    """Refuse to let anybody in by accident.

    Raises:
        ConfigError: The service would listen beyond this machine, and ask nobody who they are.
    """
    if is_local(settings) or settings.auth.is_required or settings.allowed_hosts:
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
    if settings.uds is not None:
        return _listen_at_path(settings.uds)
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


def _listen_at_path(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError(
            "[server] uds needs Unix sockets, which Windows has not; use host and port"
        )
    try:
        _remove_stale(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with ExitStack() as undo:
            undo.callback(listening.close)
            listening.bind(str(path))
            path.chmod(_MODE)  # nobody can connect before the next line
            listening.listen(_BACKLOG)
            undo.pop_all()
            return listening
    except OSError as exc:  # a path that is too long has no number of an error
        why = os.strerror(exc.errno) if exc.errno else str(exc)
        raise StandardsMcpError(
            f"cannot listen at {path}: {why}; choose another [server] uds"
        ) from None


def _remove_stale(path: Path) -> None:
    """Remove a socket at which nobody listens any more, as a process that ended leaves one."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise StandardsMcpError(f"{path} is no socket; choose another [server] uds")
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
            suppress(ConnectionRefusedError),
        ):
            probe.settimeout(_PROBE_SECONDS)
            # One that takes nobody in any more listens, too.
            with suppress(TimeoutError, BlockingIOError):
                probe.connect(str(path))
            raise StandardsMcpError(
                f"another process listens at {path}; choose another [server] uds"
            )
        path.unlink()


def url_of(listening: socket.socket) -> str:
    """Return the address of MCP at a socket."""
    if listening.family not in (socket.AF_INET, socket.AF_INET6):
        return f"unix:{listening.getsockname()}"
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP}"
