"""The transport ``http``: check its settings, and serve in one or several processes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial
from time import monotonic, perf_counter
from typing import Final
from urllib.parse import urlsplit

import click

from standards_mcp.commands import Finding
from standards_mcp.errors import ConfigError
from standards_mcp.transports import HttpSettings, Settings, Start, Transport

from .listening import (
    Workers,
    check_exposure,
    check_workers,
    is_local,
    known_hosts,
    listen,
    shared_settings,
)

_PORT_VARIABLE: Final = "MCP_PORT"
_LAST_PORT: Final = 65_535
_SAME_SIGNAL_SECONDS: Final = 1.0


def _serve(start: Start) -> int:
    """Serve over HTTP; return the exit code.

    Raises:
        ConfigError: The settings would serve others by accident, or do not fit together.
        StandardsMcpError: The address is not available.
    """
    from .authorization import Principals  # noqa: PLC0415  - `config check` needs none of it
    from .serving import CLOSING_SECONDS, serve_http  # noqa: PLC0415  - as above

    start.override(_port_of_environment(start))
    settings = start.read_settings().server
    if not start.is_insecure:
        check_exposure(settings)
    check_workers(settings)
    listening = listen(settings)
    began, on_listening, tell_others = None, None, None
    if settings.workers > 1:
        shared = shared_settings(settings)
        parent = Workers(settings.workers, listening).run()
        if isinstance(parent, int):
            return parent
        start.override(shared)
        began, on_listening, tell_others = perf_counter(), parent.tell_ready, parent.ask_for_reload
    drain = _drain_timer(settings.drain + CLOSING_SECONDS)
    host, reloading = start.load_host(), start.reload_options(tell_others)
    principals = Principals(lambda: host.settings.server.auth)
    serve = partial(
        serve_http,
        host=host,
        listening=listening,
        principals=principals,
        on_listening=on_listening,
        reloading=reloading,
    )
    start.run(serve, principal_of=principals, reloading=reloading, began=began, drain=drain)
    return 0


def _port_of_environment(start: Start) -> dict[str, str]:
    """Return ``MCP_PORT`` as a setting, unless a setting has the port or the socket.

    Only this transport reads the variable: it may be meant for another program.

    Raises:
        click.UsageError: The variable is not a port.
    """
    text = os.environ.get(_PORT_VARIABLE, "").strip()
    if not text or any(start.is_set("server", key) for key in ("port", "uds")):
        return {}
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > _LAST_PORT:
        raise click.UsageError(
            f"{_PORT_VARIABLE} in the environment is not a port from 0 to {_LAST_PORT}. Correct "
            "it, or use --port, which overrides it."
        )
    return {"server.port": str(int(text))}


def _drain_timer(seconds: float) -> Callable[[], float]:
    """Return a function to call at each signal; it returns the time left for calls in flight.

    A second signal means that the user does not want to wait. But a terminal and a service manager
    send a signal to workers and to their parent, which passes it on: these count as one.
    """
    signals: list[float] = []

    def remaining() -> float:
        signals.append(monotonic())
        return seconds if signals[-1] - signals[0] < _SAME_SIGNAL_SECONDS else 0.0

    return remaining


def _check(all_settings: Settings) -> Iterator[Finding]:
    """Yield why the service or the audit log could not start, and mistakes about its users."""
    settings = all_settings.server
    for check in (check_exposure, check_workers):
        try:
            check(settings)
        except ConfigError as exc:
            yield Finding("service", "error", str(exc))
    for key, path in (("uds", settings.uds), ("audit.path", settings.audit.path)):
        if path is not None and not path.parent.is_dir():
            missing = f"[server] {key}: the folder {path.parent} does not exist"
            yield Finding("service", "error", f"{missing}; make it, or choose another")
    yield from _check_users(settings)


def _check_users(settings: HttpSettings) -> Iterator[Finding]:
    """Yield warnings if anyone on the network or no user may use the service."""
    if not is_local(settings) and settings.allowed_hosts and not settings.auth.is_required:
        warning = (
            "[server] needs no token, so anyone who reaches it from another machine may use it;"
            " make a token with `standards-mcp auth token new NAME`"
        )
        yield Finding("service", "warning", warning)
    auth = settings.auth
    if auth.required and not (auth.tokens or auth.jwt or auth.oidc):
        warning = (
            "[server.auth] required is true, but no token exists; make one with `standards-mcp"
            " auth token new NAME`"
        )
        yield Finding("service", "warning", warning)
    if auth.oidc:
        host = urlsplit(auth.oidc.public_url).hostname or ""
        if not any(fnmatch(host, name.casefold()) for name in known_hosts(settings)):
            refused = f"[server.auth.oidc] public_url: requests for the host {host!r} are refused"
            advice = "name it in [server] allowed_hosts"
            yield Finding("service", "warning", f"{refused}; {advice}")


HTTP: Final = Transport(serve=_serve, check=_check)
