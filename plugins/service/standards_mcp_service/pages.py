"""Pages of plugins at the root of the service, and the calls of tools that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from standards_mcp import Route as PluginRoute
from standards_mcp.transports import Host, PluginRoutes, Principal

from .authorization import ANONYMOUS
from .guards import PRIVATE_PAGE
from .rest import Rest

_POLICY: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS: Final = {
    **PRIVATE_PAGE,
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


class Pages:
    """Serve the pages that plugins have now, and call tools for them as the REST API does.

    Args:
        principal_of: Returns the caller of a request.
    """

    def __init__(
        self,
        host: Host,
        principal_of: Callable[[Request], Principal],
        plugin_routes: PluginRoutes,
        rest: Rest,
    ) -> None:
        self._host, self._principal_of = host, principal_of
        self._plugin_routes, self._rest = plugin_routes, rest

    def routes(self) -> list[BaseRoute]:
        """Return the routes, which match no other paths than those of pages."""
        page = _PageRoute("/{page}", self._plugin_routes, "GET", self._exists)
        call = _PageRoute("/{page}/tools/{tool}", self._call, "POST", self._exists)
        return [page, call]

    def open_to(self, principal: Principal) -> dict[str, PluginRoute]:
        """Return the pages that a caller may open, by their paths."""
        return {
            item.path: item.route
            for item in self._host.visible(principal).routes
            if item.route.is_page
            and not item.hidden_reason
            and (not item.scope or principal.holds(item.scope))
        }

    def _exists(self, path: str) -> bool:
        return path in self.open_to(ANONYMOUS)  # it has all scopes

    async def _call(self, request: Request) -> Response:
        page = self.open_to(self._principal_of(request)).get(f"/{request.path_params['page']}")
        tools = page.tools if page else ()
        return await self._rest.answer(request, request.path_params["tool"], tools)


class _PageRoute(Route):
    """A route below the paths of pages; for other paths, the service answers as without pages.

    Args:
        exists: Returns True for the path of a page that is served to anybody.
    """

    def __init__(
        self, path: str, endpoint: Callable[..., Any], method: str, exists: Callable[[str], bool]
    ) -> None:
        protection = [Middleware(_with_protection)]
        super().__init__(path, endpoint, methods=[method], middleware=protection)
        self._exists = exists

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, values = super().matches(scope)
        if match is not Match.NONE and not self._exists(f"/{values['path_params']['page']}"):
            return Match.NONE, {}
        return match, values


def _with_protection(app: ASGIApp) -> ASGIApp:
    """Return *app* with the headers that protect a page; it chooses its own content policy."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("content-security-policy", _POLICY)
            await send(message)

        await app(scope, receive, send_protected)

    return answer
