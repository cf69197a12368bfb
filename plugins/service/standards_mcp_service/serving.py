"""The service over HTTP: assemble its routes and middleware, and run it until the last answer."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from standards_mcp.transports import (
    AuthSettings,
    Host,
    HostServer,
    HttpSettings,
    PluginRoutes,
    Principal,
    ReloadOptions,
    refused,
    traced,
)

from .audit_log import Audit, open_audit
from .authorization import ANONYMOUS, NOBODY, Credentials, Principals, Tokens, is_revoked
from .bodies import client_left
from .card import card_route
from .guards import (
    MCP,
    InFlight,
    with_authorization,
    with_known_hosts,
    with_trace_context,
)
from .health import Health
from .listening import is_private, known_hosts, url_of
from .metrics import Metrics
from .pages import Pages
from .rest import NOTES, Rest, most_values
from .sessions import Sessions
from .step_up import StepUp
from .wire import BoundedProtocol

if TYPE_CHECKING:
    from .people.pages import People

log = logging.getLogger("standards_mcp.service")

_START_PAGE: Final = f"""\
<!doctype html><html lang="en"><meta charset="utf-8"><title>standards-mcp</title>
<h1>standards-mcp</h1><p>MCP clients connect to <code>{MCP}</code> on this host.</p>
<ul>{{links}}</ul></html>
"""

CLOSING_SECONDS: Final = 2.0


async def serve_http(
    server: HostServer,
    host: Host,
    listening: socket.socket,
    principals: Principals,
    on_listening: Callable[[], None] | None = None,
    reloading: ReloadOptions | None = None,
) -> None:
    """Serve over HTTP until cancelled, then finish the calls in flight.

    Args:
        on_listening: Called when the service accepts requests.
        reloading: Options for reloads after changes on the admin page; None: no changes there.

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
        with open_audit(host, "http", version) as audit:
            service = _Service(server, host, principals, audit, reloading)
            async with service.admin.running() if service.admin else nullcontext():
                await service.serve(listening, on_open)


class _Service:
    """The ASGI app for the settings of a host, with its sessions and requests in flight."""

    def __init__(
        self,
        server: HostServer,
        host: Host,
        principals: Principals,
        audit: Audit | None,
        reloading: ReloadOptions | None,
    ) -> None:
        self._host, self._token_was_required = host, False
        self._settings = settings = host.settings.server
        self._in_flight = InFlight()
        metadata, metadata_routes = _metadata(settings.auth)
        principal_of, version = principals.of_request, server.version or ""
        step_up = StepUp(host, principal_of, metadata)
        self._sessions = Sessions(server, settings, lambda: most_values(host.settings), step_up)
        host.on_taken_over.append(
            lambda: self._sessions.close_where(partial(is_revoked, self._auth()))
        )
        if not self._requires_token() and not is_private(settings):
            log.warning("the service is open to all who reach it: it asks for no token")
        health = Health(host, version, principal_of, audit)
        plugin_routes = PluginRoutes(host, principal_of)
        routes = [*metadata_routes, *health.routes(), *plugin_routes.routes()]
        rest = Rest(host, version, principal_of, self._requires_token, step_up)
        pages = Pages(host, principal_of, plugin_routes, rest)
        if settings.rest:
            routes += rest.routes()
        metrics, self.admin = None, None
        if settings.metrics:
            metrics = Metrics(host, health, audit, self._in_flight, self._sessions)
            routes.append(metrics.route(principal_of))
        if settings.admin:
            from .admin.actions import Actions  # noqa: PLC0415  - only if it is configured
            from .admin.controls import Controls  # noqa: PLC0415  - only if it is configured
            from .admin.pages import Admin  # noqa: PLC0415  - its templates cost start-up time

            controls = None
            if reloading:
                controls = Controls(host, reloading, server, Actions(host, audit))
            self.admin = Admin(
                host, principal_of, controls, health, self._sessions, self._in_flight
            )
            routes += self.admin.routes()
        self._people = _people_of(host)
        routes += self._people.routes() if self._people else []
        if settings.card:
            routes.append(card_route(settings.card, version, lambda: host.title(self._stranger())))
        routes += _start_routes(settings, lambda request: pages.open_to(principal_of(request)))
        routes += pages.routes()
        app = self._in_flight.tracked(self._guarded(routes, metadata))
        if metrics:
            app = metrics.counted(app)
        self._app = with_trace_context(app) if settings.telemetry.traces else app

    def _auth(self) -> AuthSettings:
        return self._host.settings.server.auth

    def _requires_token(self) -> bool:
        # Revoking the last token must not open the service.
        self._token_was_required = self._token_was_required or self._auth().is_required
        return self._token_was_required

    def _stranger(self) -> Principal:
        return NOBODY if self._requires_token() else ANONYMOUS

    def _guarded(self, routes: Sequence[BaseRoute], metadata: AnyHttpUrl | None) -> ASGIApp:
        """Return the app of MCP and these routes, behind the middleware."""
        settings = self._settings
        middleware = [
            Middleware(
                with_known_hosts,
                hosts=known_hosts(settings),
                origins=settings.allowed_origins,
                is_private=lambda: not self._requires_token() and is_private(settings),
            )
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
        middleware += [
            Middleware(
                AuthenticationMiddleware, backend=Credentials(Tokens(self._auth), self._people)
            ),
            Middleware(
                with_authorization,
                is_required=self._requires_token,
                metadata=metadata,
                people=self._people,
            ),
        ]
        mcp = Route(MCP, endpoint=StreamableHTTPASGIApp(self._sessions))
        app = Starlette(
            routes=[mcp, *routes],
            middleware=middleware,
            exception_handlers={HTTPException: refused, ClientDisconnect: client_left},
        )
        # Behind a proxy, the address of a redirect would be wrong.
        app.router.redirect_slashes = False
        return app

    async def serve(self, listening: socket.socket, on_open: Callable[[], None]) -> None:
        """Serve until cancelled, then finish the calls in flight."""

        class Protocol(BoundedProtocol):
            most_bytes = self._settings.max_request_bytes

        proxies = self._settings.trusted_proxies
        # Without "none", uvicorn would accept WebSockets if a package for them is installed.
        config = uvicorn.Config(
            self._app,
            http=Protocol,
            interface="asgi3",
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
            self._serve_until(cancelled, _Uvicorn(config, on_open), listening)
        )
        try:
            await asyncio.shield(serving)
        finally:
            cancelled.set()
            with anyio.CancelScope(shield=True):
                await serving

    async def _serve_until(
        self, cancelled: asyncio.Event, web: uvicorn.Server, listening: socket.socket
    ) -> None:
        drain = self._settings.drain
        async with self._sessions.run():
            serving = asyncio.create_task(web.serve([listening]))
            await cancelled.wait()
            for port in web.servers:
                port.close()  # uvicorn checks `should_exit` only from time to time
            web.should_exit = True
            # Calls end before sessions and streams, because uvicorn's own limit counts open
            # streams as calls.
            if cancelled_calls := await self._in_flight.end(drain):
                fields = {"calls": cancelled_calls, "seconds": drain}
                log.warning("calls are given up", extra=fields)
        await asyncio.wait([serving], timeout=CLOSING_SECONDS)
        web.force_exit = True
        await serving


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


def _people_of(host: Host) -> People | None:
    """Return the sign-in of people, if there is one."""
    settings = host.settings.server.auth.oidc
    if settings is None:
        return None
    from .people.pages import People  # noqa: PLC0415  - its templates cost start-up time

    return People(host, settings)


def _metadata(settings: AuthSettings) -> tuple[AnyHttpUrl | None, list[Route]]:
    """Return the address and the route of the metadata that names the issuer (RFC 9728)."""
    if settings.jwt is None:
        return None, []
    # The values are unchanged, because clients compare them letter by letter.
    metadata: dict[str, Any] = {
        "resource": settings.jwt.audience,
        "authorization_servers": [settings.jwt.issuer],
        "bearer_methods_supported": ["header"],
    }
    if settings.scopes:
        metadata["scopes_supported"] = sorted(settings.scopes)

    async def describe(_: Request) -> Response:
        return JSONResponse(metadata, headers={"cache-control": "public, max-age=3600"})

    url = build_resource_metadata_url(AnyHttpUrl(settings.jwt.audience))
    methods = ["GET", "OPTIONS"]
    return url, [Route(url.path or "/", cors_middleware(describe, methods), methods=methods)]


def _start_routes(
    settings: HttpSettings, plugin_pages: Callable[[Request], Collection[str]]
) -> list[Route]:
    """Return the routes of ``/``, which lists paths of the service, and of the icon.

    Args:
        plugin_pages: Returns the paths of the pages that the caller of a request may open.
    """
    own_pages = ["/health", *["/docs"] * settings.rest, *["/admin"] * settings.admin]
    own_pages += ["/connect"] * bool(settings.auth.oidc)

    async def start(request: Request) -> Response:
        pages = [*plugin_pages(request), *own_pages]
        if "text/html" in request.headers.get("accept", ""):
            # Links are relative, so that the page works below the path of a proxy, too.
            links = "".join(f'<li><a href="{page[1:]}">{page}</a></li>' for page in pages)
            return HTMLResponse(_START_PAGE.format(links=links))
        raise HTTPException(404, f"nothing is here; MCP is at {MCP}. See also: {', '.join(pages)}")

    async def no_icon(_: Request) -> Response:
        return Response(status_code=204, headers={"cache-control": "max-age=86400"})

    return [Route("/", start, methods=["GET", "POST", "DELETE"]), Route("/favicon.ico", no_icon)]
