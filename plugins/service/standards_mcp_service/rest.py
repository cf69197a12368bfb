"""The tools as a REST API: ``POST /tools/{name}`` with the arguments as a JSON object.

``/openapi.json`` describes the API with the tools' schemas, and ``/docs`` is its Swagger UI.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import pydantic_core
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from standards_mcp import ToolResult
from standards_mcp.commands import printable
from standards_mcp.errors import InvalidInputError, RateLimitedError, UnknownToolError
from standards_mcp.transports import (
    Host,
    HostContext,
    Principal,
    RegisteredTool,
    Settings,
    error_result,
    json_response,
    plain_object,
    tool_failure,
    while_connected,
    wire_result,
    wire_tool,
    with_body,
)

from .bodies import has_more_values, media_type
from .step_up import Operation, StepUp

NOTES: Final = "standards-mcp-notes"
"""The header for notes on a structured answer, such as that it was cut."""
_MAX_HEADER_CHARS: Final = 1000
# In the page, addresses are relative, so that it works below the path of a proxy, too. In the
# document, responses are components, because each tool has the same failures.
_FOLDER: Final = Path(__file__).parent / "swagger"
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline';"
    " frame-ancestors 'none'"
)
_COMPONENTS: Final = "#/components/schemas/"
_JSON: Final = "application/json"
_FAILURES: Final = ("401", "429", "4XX", "5XX")
_CONTENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "The content blocks of MCP: texts, images and the like.",
    "properties": {"content": {"type": "array", "items": {"type": "object"}}},
    "required": ["content"],
}


class Rest:
    """Call tools for programs that do not speak MCP, by the same rules.

    Args:
        principal_of: Returns the caller of a request.
        needs_token: Returns True if requests need a token.
        step_up: Refuses calls that only more scopes allow.
    """

    def __init__(
        self,
        host: Host,
        version: str,
        principal_of: Callable[[Request], Principal],
        needs_token: Callable[[], bool],
        step_up: StepUp,
    ) -> None:
        self._host, self._version, self._step_up = host, version, step_up
        self._principal_of, self._needs_token = principal_of, needs_token

    def routes(self) -> list[BaseRoute]:
        """Return the routes; the last route matches any path of one part with a dot."""
        return [
            Route("/tools", self._list, methods=["GET"]),
            Route("/tools/{name}", self._call, methods=["POST"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
            Route("/docs", _file("page.html"), methods=["GET"]),
            Route("/docs/start.js", _file("start.js"), methods=["GET"]),
            Mount("/docs/assets", StaticFiles(directory=_FOLDER / "assets")),
            Route("/{group}.{name}", self._call, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        listed = [wire_tool(item) for item in await self._visible(request)]
        tools = [tool.model_dump(mode="json", exclude_none=True) for tool in listed]
        return json_response({"tools": tools})

    async def _describe(self, request: Request) -> Response:
        tools = await self._visible(request)
        return json_response(openapi(tools, self._version, needs_token=self._needs_token()))

    async def _visible(self, request: Request) -> list[RegisteredTool]:
        await self._host.manager.wait_listed()
        return self._host.visible(self._principal_of(request)).visible_tools

    async def _call(self, request: Request) -> Response:
        return await self.answer(request, ".".join(request.path_params.values()))

    async def answer(
        self, request: Request, name: str, tools: Collection[str] | None = None
    ) -> Response:
        """Answer a call of the tool *name*, whose arguments are the body of the request.

        Args:
            tools: Other tools look unknown; None: all may be called.
        """
        request = await with_body(request, self._host.settings.server.max_request_bytes)
        body = await request.body()
        async with while_connected(request):
            result = await self._result(request, name, body, tools)
            return _response(name, result) if isinstance(result, ToolResult) else result

    async def _result(
        self, request: Request, name: str, body: bytes, tools: Collection[str] | None
    ) -> ToolResult | Response:
        most = most_values(self._host.settings)
        context = HostContext(self._principal_of(request))
        # MCP corrects small mistakes of models in arguments. Programs must follow the schema, as
        # the OpenAPI document says.
        context.is_exact = True
        try:
            if tools is not None and name not in tools:
                await self._refuse(name, context)
            try:
                arguments = _arguments(body, media_type(request), most)
            except (InvalidInputError, HTTPException):
                await self._host.count_refused(name, context)
                raise
            call = Operation("tool", name, "", arguments)
            if refusal := await self._step_up.refusal(request.scope, call):
                return refusal
            return await self._host.call_tool(name, arguments, context)
        except UnknownToolError as exc:
            return error_result("not_found", str(exc))
        except (InvalidInputError, RateLimitedError) as exc:
            return error_result(exc.error_type, str(exc), exc.data)

    async def _refuse(self, name: str, context: HostContext) -> NoReturn:
        """Record and count a call of a tool that is none of a page's, and refuse it.

        Raises:
            RateLimitedError: There were too many such calls.
            UnknownToolError: There were not.
        """
        self._host.pipeline.recording.refused("tool", name, {}, context)
        await self._host.count_refused(name, context)
        raise UnknownToolError(f"this page calls no tool {name!r}")


def most_values(settings: Settings) -> int:
    """Return the highest number of values in a request, checked before it is parsed.

    It is twice the limit for arguments: slightly too many values are refused in the call, so that
    the model can read the reason.
    """
    return 2 * settings.tools.max_argument_values


def _arguments(body: bytes, kind: str, most: int) -> Mapping[str, Any]:
    """Return the arguments in a body.

    Raises:
        InvalidInputError: The body is not a JSON object.
        HTTPException: The body has another media type, or more than *most* values.
    """
    if kind != _JSON:
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


def _response(name: str, result: ToolResult) -> Response:
    answer = wire_result(name, result)
    body: Mapping[str, Any] | None = answer.get("structuredContent")
    if answer["isError"]:
        return tool_failure(body, result.text)
    if body is None:
        body = {"content": answer["content"]}
    # The body is the tool's own structure, which has no place for notes.
    notes = _header_value(" ".join(result.notes))
    return json_response(body, headers={NOTES: notes} if notes else {})


def _header_value(text: str) -> str:
    """Return a text as the value of a header, cut because proxies refuse long headers."""
    return printable(" ".join(text.split())).encode("ascii", "replace").decode()[:_MAX_HEADER_CHARS]


def openapi(tools: Iterable[RegisteredTool], version: str, *, needs_token: bool) -> dict[str, Any]:
    """Return the OpenAPI document of the tools that one caller may use.

    Args:
        needs_token: True if requests need a bearer token.
    """
    document: dict[str, Any] = json.loads((_FOLDER / "openapi.json").read_bytes())
    document["info"]["version"] = version
    paths, components = document["paths"], document["components"]
    schemas: dict[str, dict[str, Any]] = components["schemas"]
    for item in tools:
        # References in a schema would start at the root of the document, so they are resolved.
        schemas[f"{item.published}.arguments"] = plain_object(item.arguments.schema)
        schemas[f"{item.published}.result"] = plain_object(item.result.schema or _CONTENT)
        paths[f"/tools/{item.published}"] = {"post": _call_operation(item, item.published)}
        if "." in item.declared:
            paths[f"/{item.declared}"] = {"post": _call_operation(item, f"{item.declared}!")}
    if needs_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _call_operation(item: RegisteredTool, operation: str) -> dict[str, Any]:
    return {
        "operationId": operation,
        "summary": item.title or item.published,
        "description": item.description,
        "tags": [item.plugin],
        "requestBody": {"required": True, **_json_body(f"{item.published}.arguments")},
        "responses": {
            "200": {"description": "The answer.", **_json_body(f"{item.published}.result")},
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _FAILURES},
        },
    }


def _json_body(schema: str) -> dict[str, Any]:
    return {"content": {_JSON: {"schema": {"$ref": f"{_COMPONENTS}{schema}"}}}}


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        return FileResponse(_FOLDER / name, headers={"content-security-policy": _POLICY})

    return answer
