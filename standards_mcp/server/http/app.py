"""The app: MCP at ``/mcp``, health, and what every request passes before them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from standards_mcp.config.models.http import HttpSettings

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
    middleware += [
        Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier)),
        Middleware(_Authorized, is_required=is_required),
        Middleware(WholeBodies),
    ]
    mcp = Route(MCP, endpoint=StreamableHTTPASGIApp(manager))
    in_flight = InFlight(Starlette(routes=[mcp, *routes], middleware=middleware))
    return App(in_flight, in_flight)


def hosts_of(settings: HttpSettings) -> Collection[str]:
    """Return the hosts that requests may name."""
    if settings.allowed_hosts:
        return settings.allowed_hosts
    return LOOPBACK if settings.host in LOOPBACK else ("*",)


class _Authorized:
    """Lets only the holders of a token through, where one is needed."""

    def __init__(self, app: ASGIApp, is_required: Callable[[], bool]) -> None:
        self._app, self._is_required = app, is_required
        self._guarded = RequireAuthMiddleware(app, required_scopes=[])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["path"] == LIVE or not self._is_required()
        await (self._app if is_open else self._guarded)(scope, receive, send)
