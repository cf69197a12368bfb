"""The routes of plugins below ``/plugins/<plugin>``, by the same rules as their tools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from starlette.authentication import AuthCredentials, SimpleUser
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.types import Receive, Scope, Send

from standards_mcp.calls.call import Call
from standards_mcp.calls.context import Principal, Unattended
from standards_mcp.contributions.routes import PREFIX, RegisteredRoute, find_route
from standards_mcp.contributions.selection import visible
from standards_mcp.errors import ToolError
from standards_mcp.host import Host
from standards_mcp.server.http.guards import Answer

from .bodies import while_connected, with_body
from .failures import failed_with, refused

_GIVEN: Final = (
    "type",
    "asgi",
    "http_version",
    "method",
    "scheme",
    "path",
    "raw_path",
    "query_string",
    "root_path",
    "client",
    "server",
)
"""What a plugin gets of a request. The rest is the service's own, such as the app."""
_SECRET: Final = ("authorization", "cookie", "proxy-authorization")
_LEFT: Final = 499
"""In the log: the client left before the answer. It is no status of HTTP."""


class PluginRoutes:
    """Answers the requests for routes of plugins, as they are at the moment.

    Args:
        principal_of: Returns who asks.
    """

    def __init__(self, host: Host, principal_of: Callable[[Request], Principal]) -> None:
        self._host, self._principal_of = host, principal_of

    def routes(self) -> list[BaseRoute]:
        """Return the one route below which all of them are."""
        return [Mount(PREFIX, app=self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise HTTPException(404)
        request = Request(scope, receive)
        principal = self._principal_of(request)
        context = Unattended(principal)
        await self._host.manager.wait_listed()
        try:
            route, parameters = self._find(request, principal)
        except HTTPException:
            self._host.refused("route", f"{request.method} {request.url.path}", context)
            raise
        whole = await with_body(request, self._host.settings.server.max_request_bytes)
        given = _given(whole, principal, parameters)
        answer = Answer(send)
        call = Call(
            item=route,
            function=partial(_respond, route, request, given, answer, context),
            render=lambda sent: sent,
            # As in an address, by which secrets in it are found and masked.
            arguments={**parameters, "query": f"?{request.url.query}"},
            context=context,
        )
        try:
            await self._host.respond(call)
        except ToolError as exc:
            if not answer.has_begun:
                failure = failed_with(exc.error_type, str(exc), exc.data)
                await failure(scope, request.receive, send)
            elif not answer.has_ended:  # uvicorn closes the connection, which tells the client
                raise ConnectionAbortedError("the answer of a route has broken off") from None

    def _find(
        self, request: Request, principal: Principal
    ) -> tuple[RegisteredRoute, dict[str, Any]]:
        plugin, slash, rest = request.scope["path"].removeprefix(f"{PREFIX}/").partition("/")
        routes = [
            each for each in visible(self._host.visible(principal).routes) if each.plugin == plugin
        ]
        route, parameters, methods = find_route(routes, slash + rest, request.method)
        if route is None:
            allowed = {"Allow": ", ".join(sorted(methods))}
            raise HTTPException(405, headers=allowed) if methods else HTTPException(404)
        if not principal.holds(route.scope):
            needed = f'Bearer error="insufficient_scope", scope="{route.scope}"'
            why = f"this needs the scope {route.scope!r}"
            raise HTTPException(403, why, {"WWW-Authenticate": needed})
        return route, parameters


async def _respond(
    route: RegisteredRoute,
    request: Request,
    given: Request,
    answer: Answer,
    context: Unattended,
) -> None:
    """Let the function of a route answer, and send what it returns.

    Args:
        request: The request whose body was read, in which the client's leaving comes next.
        given: What the function gets, with the body.
    """
    try:
        async with while_connected(request):
            response = await response_of(route, given)
    except ClientDisconnect:
        context.add_log_fields(status=_LEFT)
        return
    context.add_log_fields(status=response.status_code)
    await response(given.scope, request.receive, answer.send)


async def response_of(route: RegisteredRoute, request: Request) -> Response:
    """Return what the function of a route answers to a request.

    Raises:
        TypeError: It returned no response.
    """
    try:
        response: Any = await route.route.function(request)
    except HTTPException as exc:
        return await refused(request, exc)
    if not isinstance(response, Response):
        raise TypeError(f"a route returns a Response of Starlette, not {response!r:.100}")
    return response


def _given(request: Request, principal: Principal, parameters: dict[str, Any]) -> Request:
    """Return what a plugin gets of a request: nothing of the service, and no secret."""
    headers = Headers(scope=request.scope)
    scopes = sorted(principal.scopes or ())
    scope = {key: request.scope[key] for key in _GIVEN if key in request.scope} | {
        "headers": [pair for pair in headers.raw if pair[0].decode("latin-1") not in _SECRET],
        "path_params": parameters,
        "user": SimpleUser(principal.name),
        "auth": AuthCredentials(scopes),
    }
    return Request(scope, request.receive)
