"""Answers the requests for routes of an isolated plugin: a response goes to the host whole."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.authentication import AuthCredentials, SimpleUser
from starlette.requests import Request
from starlette.types import Message

from standards_mcp.calls.call import Call
from standards_mcp.calls.context import Principal, Unattended
from standards_mcp.contributions.routes import PREFIX
from standards_mcp.errors import NotFoundError, TooLargeError
from standards_mcp.host import Host
from standards_mcp.remote.isolated import protocol as wire
from standards_mcp.server.http.api.plugin_routes import response_of

_MOST_BYTES: Final = 8 * 1024 * 1024


async def respond(host: Host, told: wire.Respond) -> wire.Responded:
    """Return what the route that a request is for answers.

    Raises:
        ToolError: It refused or failed, is gone, or the response is too large.
    """
    routes = (each for each in host.visible().routes if each.declared == told.name)
    if (route := next(routes, None)) is None:
        raise NotFoundError("the plugin has taken this route away")
    path = told.path.removeprefix(f"{PREFIX}/{route.plugin}")
    request, collected = _request(told, route.parameters(path) or {}), _Collected()

    async def function() -> None:
        response = await response_of(route, request)
        await response(request.scope, request.receive, collected.send)

    await host.respond(
        Call(
            item=route,
            function=function,
            render=lambda sent: sent,
            arguments={},
            context=Unattended(Principal(told.caller)),
        )
    )
    return wire.Responded(
        status=collected.status,
        headers=collected.headers,
        body=base64.b64encode(collected.body).decode(),
    )


def _request(told: wire.Respond, parameters: dict[str, Any]) -> Request:
    held: list[Message] = [{"type": "http.request", "body": base64.b64decode(told.body)}]

    async def receive() -> Message:
        if not held:
            await asyncio.Event().wait()  # the host cancels the call when the client leaves
        return held.pop()

    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told.headers]
    scope = told.about | {
        "type": "http",
        "path": told.path,
        "query_string": told.query.encode("latin-1"),
        "headers": headers,
        "path_params": parameters,
        "user": SimpleUser(told.caller),
        "auth": AuthCredentials(told.scopes),
    }
    return Request(scope, receive)


@dataclass(slots=True)
class _Collected:
    """A response that is kept instead of sent."""

    status: int = 500
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytearray = field(default_factory=bytearray)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            found = message.get("headers", ())
            self.headers = [
                (each.decode("latin-1"), text.decode("latin-1")) for each, text in found
            ]
        self.body += message.get("body", b"")
        if len(self.body) > _MOST_BYTES:
            most = f"{_MOST_BYTES // 1024**2} MiB"
            raise TooLargeError(f"a route of an isolated plugin answers with at most {most}")
