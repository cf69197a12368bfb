"""Assemble the service over HTTP: its routes, and the middleware before them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from standards_mcp.config.models.http import AuthSettings, HttpSettings
from standards_mcp.host import Host
from standards_mcp.server.audit import Audit
from standards_mcp.server.reload import Reloading
from standards_mcp.server.server import HostServer
from standards_mcp.server.tracing import with_parents

from .authorization import EXPIRED, Credentials, Principals, Tokens, is_revoked
from .bodies import html_page, refused
from .guards import (
    LIVE,
    LOOPBACK,
    MCP,
    InFlight,
    KnownHosts,
    NotForwarded,
    UntilExpiry,
    WholeBodies,
)
from .health import Health
from .listening import is_local, is_private
from .metrics import Metrics
from .plugin_routes import PluginRoutes
from .rest import NOTES, Rest, most_values
from .sessions import Sessions

log = logging.getLogger(__name__)

_CHALLENGE: Final = 'Basic realm="standards-mcp: a token as the password", charset="UTF-8"'
_NOT_SIGNED_IN: Final = (
    "a token is needed, as Authorization: Bearer TOKEN; who runs the service can make one with"
    " standards-mcp auth token new NAME"
)
_NOT_VALID: Final = "the token is not valid here; check it, or ask for a new one"
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_STYLE: Final = """\
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: auto; padding: 1rem; }
</style>"""
# Links are relative, so that the page works below the path of a proxy, too.
_START: Final = """\
<h1>standards-mcp</h1>
<p>MCP clients connect to <code>{mcp}</code> on this host.</p>
<ul>
{links}
</ul>"""


@dataclass(frozen=True, slots=True)
class Service:
    """An app that is ready to be served.

    Attributes:
        app: The ASGI app for uvicorn.
        in_flight: The requests in flight.
        sessions: The sessions of clients before 2026-07-28; run them while the app is served.
        tokens: The valid tokens; close them at the end.
        trusted_proxies: The proxies that may name the address of a client.
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
        # Revoking the last token must not open the service.
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
        from .admin.controls import Controls  # noqa: PLC0415  - only if it is configured
        from .admin.pages import Admin  # noqa: PLC0415  - its templates cost start-up time

        controls = Controls(host, reloading, server.tell_changed, audit)
        admin = Admin(host, principal_of, controls, health, sessions, lambda: in_flight.streams)
        routes += admin.routes()
    routes += _start_routes(settings)
    tokens = Tokens(auth)
    in_flight = _build_app(sessions, settings, tokens, is_required, routes)
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
        log.warning("the service is open to all who reach it: it asks for no token")


def _build_app(
    manager: StreamableHTTPSessionManager,
    settings: HttpSettings,
    verifier: TokenVerifier,
    is_required: Callable[[], bool],
    routes: Sequence[BaseRoute],
) -> InFlight:
    hosts: Collection[str] = settings.allowed_hosts
    if not hosts:
        hosts = LOOPBACK if is_local(settings) else ("*",)
    middleware = [
        Middleware(KnownHosts, hosts=hosts, origins=settings.allowed_origins),
        Middleware(NotForwarded, is_private=lambda: is_private(settings) and not is_required()),
    ]
    if settings.allowed_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.allowed_origins,
                allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
                allow_headers=["*"],
                expose_headers=["mcp-session-id", "www-authenticate", "retry-after", NOTES],
            )
        )
    metadata, metadata_routes = _metadata(settings.auth)
    middleware += [
        Middleware(AuthenticationMiddleware, backend=Credentials(verifier)),
        Middleware(_Authorized, is_required=is_required, metadata=metadata),
        Middleware(UntilExpiry),
        Middleware(WholeBodies),
    ]
    routes = [Route(MCP, endpoint=StreamableHTTPASGIApp(manager)), *metadata_routes, *routes]
    failures = {HTTPException: refused}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=failures)
    # Behind a proxy, the address of a redirect would be wrong.
    app.router.redirect_slashes = False
    return InFlight(app)


def _metadata(settings: AuthSettings) -> tuple[AnyHttpUrl | None, list[Route]]:
    """Return the address and the route of the metadata that names the issuer (RFC 9728)."""
    if settings.jwt.issuer is None or settings.jwt.audience is None:
        return None, []
    # Unchanged from the configuration, because clients compare them letter by letter.
    metadata: dict[str, Any] = {
        "resource": settings.jwt.audience,
        "authorization_servers": [settings.jwt.issuer],
        "bearer_methods_supported": ["header"],
    }
    if settings.scopes:
        metadata["scopes_supported"] = sorted(settings.scopes)

    async def describe(_: Request) -> Response:
        return JSONResponse(metadata, headers={"cache-control": "public, max-age=3600"})

    url, methods = (
        build_resource_metadata_url(AnyHttpUrl(settings.jwt.audience)),
        ["GET", "OPTIONS"],
    )
    return url, [Route(url.path or "/", cors_middleware(describe, methods), methods=methods)]


class _Authorized:
    """Refuse requests without a valid token, if one is required."""

    def __init__(
        self, app: ASGIApp, is_required: Callable[[], bool], metadata: AnyHttpUrl | None
    ) -> None:
        self._app, self._is_required, self._metadata = app, is_required, metadata
        self._open = {LIVE, metadata.path if metadata else None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A wrong token is refused, because an anonymous caller may see more than its owner.
        has_token = "authorization" in Headers(scope=scope)
        is_valid = isinstance(scope["user"], AuthenticatedUser)
        if has_token and not is_valid:
            client = str(scope["client"][0]) if scope["client"] else ""  # a Unix socket has none
            log.info("a request is refused", extra={"client": client, "reason": "token"})
        is_needed = has_token or self._is_required()
        if is_valid or not is_needed or scope["path"] in self._open:
            await self._app(scope, receive, send)
        else:
            await self._refusal(scope, has_token=has_token)(scope, receive, send)

    def _refusal(self, scope: Scope, *, has_token: bool) -> Response:
        """Return the answer to a request without a valid token (RFC 6750)."""
        error, why = "invalid_token", _NOT_VALID
        if expired := scope["state"].get(EXPIRED):
            why = f"the token expired at {expired}; ask for a new one"
        challenge = [f'error="{error}"', f'error_description="{why}"']
        if not has_token:  # the RFC wants no error in the challenge then
            error, why, challenge = "missing_token", _NOT_SIGNED_IN, ['realm="standards-mcp"']
        if self._metadata:
            challenge.append(f'resource_metadata="{self._metadata}"')
        headers = {"www-authenticate": f"Bearer {', '.join(challenge)}"}
        refusal = JSONResponse({"error": error, "error_description": why}, 401, headers)
        if scope.get("method") == "GET" and "text/html" in Headers(scope=scope).get("accept", ""):
            refusal.headers.append("www-authenticate", _CHALLENGE)  # the browser asks its user
        return refusal


def _start_routes(settings: HttpSettings) -> list[BaseRoute]:
    """Return the routes of ``/``, a list of links for people and programs, and of the icon."""
    pages = {"/health": "the version and the state of the service"}
    if settings.rest:
        pages["/docs"] = "the tools as a REST API"
    if settings.admin:
        pages["/admin"] = "calls, plugins and configuration, with switches for the tools"
    return [
        Route("/", _start(pages), methods=_METHODS),
        Route("/favicon.ico", _no_icon, methods=["GET"]),
    ]


def _start(pages: dict[str, str]) -> Callable[[Request], Awaitable[Response]]:
    links = "\n".join(
        f'<li><a href="{path[1:]}">{path}</a>: {about}</li>' for path, about in pages.items()
    )
    page = html_page("standards-mcp", _STYLE, _START.format(mcp=MCP, links=links))

    async def start(request: Request) -> Response:
        is_browser = "text/html" in request.headers.get("accept", "")
        if request.method in ("GET", "HEAD") and is_browser:
            return HTMLResponse(page, headers={"content-security-policy": _POLICY})
        raise HTTPException(404, f"nothing is here; MCP is at {MCP}. See also: {', '.join(pages)}")

    return start


async def _no_icon(_: Request) -> Response:
    return Response(status_code=204, headers={"cache-control": "max-age=86400"})
