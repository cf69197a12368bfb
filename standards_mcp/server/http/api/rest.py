"""The tools as a REST API: ``POST /tools/{name}`` with the arguments as a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import pydantic_core
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from standards_mcp._utils.text import printable
from standards_mcp.calls.context import Principal, Unattended
from standards_mcp.config.models.tools import ToolSettings
from standards_mcp.contributions.results import error_result
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import InvalidInputError, RateLimitedError, UnknownToolError
from standards_mcp.host import Host
from standards_mcp.plugin import ToolResult
from standards_mcp.server.definitions import wire_result, wire_tool

from .bodies import has_more_values, media_type, while_connected, with_body
from .failures import failed, json_response
from .openapi import openapi
from .swagger import docs_routes

NOTES: Final = "standards-mcp-notes"
"""The header with what a tool's answer says beside its structure, such as that it was cut."""
_LONGEST_HEADER: Final = 1000


class Rest:
    """Calls tools for programs that do not speak MCP, by the same rules.

    Args:
        principal_of: Returns who asks.
        needs_token: Tells whether requests need a token.
    """

    def __init__(
        self,
        host: Host,
        version: str,
        principal_of: Callable[[Request], Principal],
        needs_token: Callable[[], bool],
    ) -> None:
        self._host, self._version = host, version
        self._principal_of, self._needs_token = principal_of, needs_token

    def routes(self) -> list[BaseRoute]:
        """Return the routes; the last one fits any path of one part with a dot."""
        return [
            Route("/tools", self._list, methods=["GET"]),
            Route("/tools/{name}", self._call, methods=["POST"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
            *docs_routes(),
            Route("/{group}.{name}", self._call_declared, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        listed = [wire_tool(item) for item in await self._visible(request)]
        tools = [each.model_dump(mode="json", exclude_none=True) for each in listed]
        return json_response({"tools": tools})

    async def _describe(self, request: Request) -> Response:
        tools = await self._visible(request)
        return json_response(openapi(tools, self._version, needs_token=self._needs_token()))

    async def _visible(self, request: Request) -> list[RegisteredTool]:
        await self._host.manager.wait_listed()
        return self._host.visible(self._principal_of(request)).visible_tools

    async def _call(self, request: Request) -> Response:
        return await self._answer(request, request.path_params["name"])

    async def _call_declared(self, request: Request) -> Response:
        parts = request.path_params
        return await self._answer(request, f"{parts['group']}.{parts['name']}")

    async def _answer(self, request: Request, name: str) -> Response:
        request = await with_body(request, self._host.settings.server.max_request_bytes)
        body = await request.body()
        async with while_connected(request):
            return _answered(name, await self._result(request, name, body))

    async def _result(self, request: Request, name: str, body: bytes) -> ToolResult:
        most = most_values(self._host.settings.tools)
        context = Unattended(self._principal_of(request))
        # Over MCP, arguments that a model has written almost right are understood. Programs get
        # what the document of OpenAPI promises.
        context.is_exact = True
        try:
            try:
                arguments = _arguments(body, media_type(request), most)
            except (InvalidInputError, HTTPException):
                await self._host.count_refused(name, context)
                raise
            return await self._host.call_tool(name, arguments, context)
        except UnknownToolError as exc:
            return error_result("not_found", str(exc))
        except (InvalidInputError, RateLimitedError) as exc:
            return error_result(exc.error_type, str(exc), exc.data)


def most_values(settings: ToolSettings) -> int:
    """Return how many values a request may have before it is parsed.

    That is twice what its arguments may have: slightly too many are refused in the call, where the
    model reads why.
    """
    return 2 * settings.max_argument_values


def _arguments(body: bytes, kind: str, most: int) -> Mapping[str, Any]:
    """Return the arguments in a body.

    Raises:
        InvalidInputError: They are no JSON object.
        HTTPException: The body is of another kind, or has more than *most* values.
    """
    if kind != "application/json":
        raise HTTPException(415, "send the arguments as JSON, with Content-Type: application/json")
    if has_more_values(body, most):
        raise HTTPException(413, f"the body has more than {most:,} values; send fewer")
    try:
        arguments: object = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as exc:
        raise InvalidInputError(f"the body is not JSON: {exc}") from None
    if not isinstance(arguments, dict):
        raise InvalidInputError("the body is not a JSON object with the arguments")
    return cast("dict[str, Any]", arguments)


def _answered(name: str, result: ToolResult) -> Response:
    answer = wire_result(name, result)
    body: Mapping[str, Any] | None = answer.get("structuredContent")
    if answer["isError"]:
        return failed(body, result.text)
    if body is None:
        body = {"content": answer["content"]}
    notes = _header(" ".join(result.notes))
    return json_response(body, headers={NOTES: notes} if notes else {})


def _header(text: str) -> str:
    """Return a text as the value of a header, which proxies refuse if it is long."""
    return printable(" ".join(text.split())).encode("ascii", "replace").decode()[:_LONGEST_HEADER]
