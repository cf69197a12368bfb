"""The app: MCP at ``/mcp``, health, and what every request passes before them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
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
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from standards_mcp.config.models.http import AuthSettings, HttpSettings

from .api.failures import refused
from .api.rest import NOTES
from .authorization import EXPIRED, Credentials
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
from .sockets import is_local, is_private

log = logging.getLogger(__name__)

_CHALLENGE: Final = 'Basic realm="standards-mcp: a token as the password", charset="UTF-8"'
_NOT_SIGNED_IN: Final = (
    "a token is needed, as Authorization: Bearer TOKEN; who runs the service can make one with"
    " standards-mcp auth token new NAME"
)
_NOT_KNOWN: Final = "the token is not valid here; check it, or ask for a new one"


def build_app(
    manager: StreamableHTTPSessionManager,
    settings: HttpSettings,
    verifier: TokenVerifier,
    is_required: Callable[[], bool],
    routes: Sequence[BaseRoute],
) -> InFlight:
    """Return the app that serves *manager* and *routes*.

    Args:
        verifier: Knows the tokens.
        is_required: Tells whether requests need one.
    """
    middleware = [
        Middleware(KnownHosts, hosts=hosts_of(settings), origins=settings.allowed_origins),
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
    metadata, described = _metadata(settings.auth)
    middleware += [
        Middleware(AuthenticationMiddleware, backend=Credentials(verifier)),
        Middleware(_Authorized, is_required=is_required, metadata=metadata),
        Middleware(UntilExpiry),
        Middleware(WholeBodies),
    ]
    routes = [Route(MCP, endpoint=StreamableHTTPASGIApp(manager)), *described, *routes]
    failures = {HTTPException: refused}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=failures)
    # Behind a proxy, the address of a redirect would be wrong.
    app.router.redirect_slashes = False
    return InFlight(app)


def hosts_of(settings: HttpSettings) -> Collection[str]:
    """Return the hosts that requests may name."""
    if settings.allowed_hosts:
        return settings.allowed_hosts
    return LOOPBACK if is_local(settings) else ("*",)


def _metadata(settings: AuthSettings) -> tuple[AnyHttpUrl | None, list[Route]]:
    """Return where clients learn whose tokens they need (RFC 9728), and the route of it."""
    if settings.jwt.issuer is None or settings.jwt.audience is None:
        return None, []
    # As they are configured: clients compare them with what they know, letter by letter.
    described: dict[str, Any] = {
        "resource": settings.jwt.audience,
        "authorization_servers": [settings.jwt.issuer],
        "bearer_methods_supported": ["header"],
    }
    if settings.scopes:
        described["scopes_supported"] = sorted(settings.scopes)

    async def describe(_: Request) -> Response:
        return JSONResponse(described, headers={"cache-control": "public, max-age=3600"})

    url, methods = (
        build_resource_metadata_url(AnyHttpUrl(settings.jwt.audience)),
        ["GET", "OPTIONS"],
    )
    return url, [Route(url.path or "/", cors_middleware(describe, methods), methods=methods)]


class _Authorized:
    """Lets only the holders of a token through, where one is needed."""

    def __init__(
        self, app: ASGIApp, is_required: Callable[[], bool], metadata: AnyHttpUrl | None
    ) -> None:
        self._app, self._is_required, self._metadata = app, is_required, metadata
        self._open = {LIVE, metadata.path if metadata else None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What is no token is never taken for nobody, who may see more than its holder did.
        is_given = "authorization" in Headers(scope=scope)
        is_known = isinstance(scope["user"], AuthenticatedUser)
        if is_given and not is_known:
            log.info("a request is refused", extra={"client": _address(scope), "reason": "token"})
        is_needed = is_given or self._is_required()
        if is_known or not is_needed or scope["path"] in self._open:
            await self._app(scope, receive, send)
        else:
            await self._refusal(scope, is_given=is_given)(scope, receive, send)

    def _refusal(self, scope: Scope, *, is_given: bool) -> Response:
        """Return the answer to a request without a valid token (RFC 6750)."""
        error, why = "invalid_token", _NOT_KNOWN
        if expired := scope["state"].get(EXPIRED):
            why = f"the token expired at {expired}; ask for a new one"
        challenge = [f'error="{error}"', f'error_description="{why}"']
        if not is_given:  # the RFC wants no error in the challenge then
            error, why, challenge = "missing_token", _NOT_SIGNED_IN, ['realm="standards-mcp"']
        if self._metadata:
            challenge.append(f'resource_metadata="{self._metadata}"')
        headers = {"www-authenticate": f"Bearer {', '.join(challenge)}"}
        refusal = JSONResponse({"error": error, "error_description": why}, 401, headers)
        if _is_page(scope):
            refusal.headers.append("www-authenticate", _CHALLENGE)
        return refusal


def _address(scope: Scope) -> str:
    """Return where a request comes from: of a Unix socket nothing is known."""
    return str(scope["client"][0]) if scope["client"] else ""


def _is_page(scope: Scope) -> bool:
    """Tell whether a browser asks for a page, so that a person can be asked for a token."""
    return scope.get("method") == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
