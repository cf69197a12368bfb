"""What the service over HTTP is made of: its routes, and what stands before them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp

from standards_mcp.config.models.http import AuthSettings, HttpSettings
from standards_mcp.host import Host
from standards_mcp.server.operations.audit import Audit
from standards_mcp.server.operations.tracing import with_parents
from standards_mcp.server.reload import Reloading
from standards_mcp.server.server import HostServer

from .api.plugin_routes import PluginRoutes
from .api.rest import Rest, most_values
from .app import build_app
from .authorization import Principals, Tokens, is_revoked
from .guards import InFlight
from .health import Health
from .metrics import Metrics
from .sessions import Sessions
from .sockets import is_private
from .start_page import start_routes

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """An app that is ready to be served.

    Attributes:
        app: What uvicorn calls.
        in_flight: What is being answered.
        sessions: Those of clients before 2026-07-28; they run while the app is served.
        tokens: Who may come; they are closed at the end.
        trusted_proxies: Those that say from where requests come.
        max_request_bytes: Limit of the body of a request.
    """

    app: ASGIApp
    in_flight: InFlight
    sessions: Sessions
    tokens: Tokens
    trusted_proxies: Sequence[str]
    max_request_bytes: int


def build_service(
    server: HostServer,
    host: Host,
    principals: Principals,
    audit: Audit | None,
    reloading: Reloading | None = None,
) -> Service:
    """Return the service that the settings of a host describe."""
    settings = host.settings.server
    sessions = Sessions(server, settings, lambda: most_values(host.settings.tools))
    was_required = False

    def auth() -> AuthSettings:
        return host.settings.server.auth

    def is_required() -> bool:
        nonlocal was_required
        # Revoking the last token must not let everybody in.
        was_required = was_required or auth().is_required
        return was_required

    host.on_taken_over.append(lambda: sessions.close_where(partial(is_revoked, auth())))
    _warn_if_open(settings, is_required=is_required())
    version, principal_of = server.version or "", principals.of_request
    health = Health(host, version, principal_of, audit)
    routes = [*health.routes(), *PluginRoutes(host, principal_of).routes()]
    if settings.rest:
        routes += Rest(host, version, principal_of, is_required).routes()
    metrics = Metrics(host, version, health, audit) if settings.metrics else None
    if metrics:
        routes.append(metrics.route(principal_of))
    if settings.admin:
        from .admin.changes import Changes  # noqa: PLC0415  - only where it is asked for
        from .admin.pages import Admin  # noqa: PLC0415  - its templates cost start-up time

        changes = Changes(host, reloading, server.tell_changed, audit)
        admin = Admin(host, principal_of, changes, health, sessions, lambda: in_flight.streams)
        routes += admin.routes()
    routes += start_routes(settings)
    tokens = Tokens(auth)
    in_flight = build_app(sessions, settings, tokens, is_required, routes)
    app: ASGIApp = in_flight
    if metrics:
        host.observe(metrics)
        metrics.show_server(in_flight, sessions)
        app = metrics.counted(app)
    if settings.telemetry.traces:
        app = with_parents(app)
    return Service(
        app, in_flight, sessions, tokens, settings.trusted_proxies, settings.max_request_bytes
    )


def _warn_if_open(settings: HttpSettings, *, is_required: bool) -> None:
    if not is_required and not is_private(settings):
        log.warning("everybody who reaches the service may use it: it asks for no token")
