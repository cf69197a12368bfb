"""The app: MCP at ``/mcp``, health, and what every request passes before them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import (
    build_resource_metadata_url,
    create_protected_resource_routes,
)
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from standards_mcp.config.models.http import AuthSettings, HttpSettings

from .guards import LOOPBACK, InFlight, KnownHosts, WholeBodies
from .health import LIVE

MCP: Final = "/mcp"


@dataclass(frozen=True)
class App:
    """The app and what its end needs.

    Attributes:
        asgi: The app.
        in_flight: The requests that are being answered.
    """

    asgi: ASGIApp
    in_flight: InFlight


def build_app(
    manager: StreamableHTTPSessionManager,
    settings: HttpSettings,
    verifier: TokenVerifier,
    is_required: Callable[[], bool],
    routes: Sequence[BaseRoute],
) -> App:
    """Return the app that serves *manager* and *routes*.

    Args:
        verifier: Knows the tokens.
        is_required: Tells whether requests need one.
    """
    middleware = [
        Middleware(KnownHosts, hosts=hosts_of(settings), origins=settings.allowed_origins)
    ]
    if settings.allowed_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.allowed_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["mcp-session-id", "www-authenticate"],
            )
        )
    metadata, described = _metadata(settings.auth)
    middleware += [
        Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier)),
        Middleware(_Authorized, is_required=is_required, metadata=metadata),
        Middleware(WholeBodies),
    ]
    routes = [Route(MCP, endpoint=StreamableHTTPASGIApp(manager)), *described, *routes]
    in_flight = InFlight(Starlette(routes=routes, middleware=middleware))
    return App(in_flight, in_flight)


def hosts_of(settings: HttpSettings) -> Collection[str]:
    """Return the hosts that requests may name."""
    if settings.allowed_hosts:
        return settings.allowed_hosts
    return LOOPBACK if settings.host in LOOPBACK else ("*",)


def _metadata(settings: AuthSettings) -> tuple[AnyHttpUrl | None, list[Route]]:
    """Return where clients learn whose tokens they need (RFC 9728), and the route of it."""
    if settings.jwt is None:
        return None, []
    resource, issuer = AnyHttpUrl(settings.jwt.audience), AnyHttpUrl(settings.jwt.issuer)
    scopes = sorted(settings.scopes) or None
    routes = create_protected_resource_routes(resource, [issuer], scopes)
    return build_resource_metadata_url(resource), routes


class _Authorized:
    """Lets only the holders of a token through, where one is needed."""

    def __init__(
        self, app: ASGIApp, is_required: Callable[[], bool], metadata: AnyHttpUrl | None
    ) -> None:
        self._app, self._is_required = app, is_required
        self._open = {LIVE, metadata.path if metadata else None}
        self._guarded = RequireAuthMiddleware(app, [], metadata)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["path"] in self._open or not self._is_required()
        await (self._app if is_open else self._guarded)(scope, receive, send)
