"""Serve the routes and pages of plugins, by the same rules as their tools."""

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
from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.contributions.routes import PREFIX, RegisteredRoute, find_route
from standards_mcp.contributions.selection import visible
from standards_mcp.errors import ToolError
from standards_mcp.host import Host

from .answers import (
    CLIENT_LEFT,
    Answer,
    failure_response,
    refused,
    while_connected,
    with_body,
)

_PLUGIN_SCOPE_KEYS: Final = (
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
"""The keys of the ASGI scope that a plugin gets. Other keys, such as the app, are internal."""
_SECRET_HEADERS: Final = (b"authorization", b"cookie", b"proxy-authorization")


class PluginRoutes:
    """Answer requests for the current routes of plugins.

    Args:
        principal_of: Returns the caller of a request.
    """

    def __init__(self, host: Host, principal_of: Callable[[Request], Principal]) -> None:
        self._host, self._principal_of = host, principal_of

    def routes(self) -> list[BaseRoute]:
        """Return the one route that covers the routes of all plugins, without their pages."""
        return [Mount(PREFIX, app=self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise HTTPException(404)
        request = Request(scope, receive)
        principal = self._principal_of(request)
        context = HostContext(principal)
        await self._host.manager.wait_listed()
        try:
            route, parameters = self._find(request, principal)
        except HTTPException:
            self._host.pipeline.recording.refused(
                "route", f"{request.method} {request.url.path}", {}, context
            )
            raise
        complete_request = await with_body(request, self._host.settings.server.max_request_bytes)
        plugin_request = _plugin_request(complete_request, principal, parameters)
        if route.route.is_page:
            tools = self._host.visible(principal).tool_names(route.route.tools)
            plugin_request.state.tools = list(tools)
        answer = Answer(send)
        call = Call(
            item=route,
            function=partial(_respond, route, request, plugin_request, answer, context),
            render=lambda sent: sent,
            # With a question mark, as in a URL, so that secrets in it are found and masked.
            arguments={**parameters, "query": f"?{request.url.query}"},
            context=context,
        )
        try:
            await self._host.pipeline.respond(call)
        except ToolError as exc:
            if not answer.has_begun:
                failure = failure_response(exc.error_type, str(exc), exc.data)
                await failure(scope, request.receive, send)
            elif not answer.has_ended:  # uvicorn closes the connection, so the client notices
                raise ConnectionAbortedError("the answer of a route has broken off") from None

    def _find(
        self, request: Request, principal: Principal
    ) -> tuple[RegisteredRoute, dict[str, Any]]:
        served = visible(self._host.visible(principal).routes)
        path = request.scope["path"]
        route, parameters, methods = find_route(served, path, request.method)
        if route is None:
            allowed = {"Allow": ", ".join(sorted(methods))}
            raise HTTPException(405, headers=allowed) if methods else HTTPException(404)
        # Globs for tools do not open routes: `teacher = ["*"]` would also open the routes that a
        # plugin adds later for its operators.
        if route.scope and not principal.holds(route.scope):
            needed = f'Bearer error="insufficient_scope", scope="{route.scope}"'
            why = f"this needs the scope {route.scope!r}"
            raise HTTPException(403, why, {"WWW-Authenticate": needed})
        return route, parameters


async def _respond(
    route: RegisteredRoute,
    request: Request,
    plugin_request: Request,
    answer: Answer,
    context: HostContext,
) -> None:
    """Call the function of a route, and send its response.

    Args:
        request: The original request, to notice that the client leaves; its body is already read.
        plugin_request: The request for the function, with the body.
    """
    try:
        async with while_connected(request):
            # The response is sent within the call, because a stream runs code of the plugin, too.
            try:
                response: Any = await route.route.function(plugin_request)
            except HTTPException as exc:
                response = await refused(plugin_request, exc)
            if not isinstance(response, Response):
                raise TypeError(f"a route returns a Response of Starlette, not {response!r:.100}")
    except ClientDisconnect:
        context.add_log_fields(status=CLIENT_LEFT)
        return
    context.add_log_fields(status=response.status_code)
    await response(plugin_request.scope, request.receive, answer.send)


def _plugin_request(request: Request, principal: Principal, parameters: dict[str, Any]) -> Request:
    """Return the request for a plugin, without internals of the service and without secrets."""
    headers = Headers(scope=request.scope)
    scopes = sorted(principal.scopes or ())
    # A plugin cannot keep, log or send on the values that it does not get.
    scope = {key: request.scope[key] for key in _PLUGIN_SCOPE_KEYS if key in request.scope} | {
        "headers": [item for item in headers.raw if item[0] not in _SECRET_HEADERS],
        "path_params": parameters,
        "user": SimpleUser(principal.name),
        "auth": AuthCredentials(scopes),
    }
    return Request(scope, request.receive)
