"""Describes the tools as OpenAPI 3.1, from the same schemas as MCP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from standards_mcp.contributions.schemas import Schema, plain_object
from standards_mcp.contributions.tools import RegisteredTool

_COMPONENTS: Final = "#/components/schemas/"
_JSON: Final = "application/json"
_CONTENT: Final[Schema] = {
    "type": "object",
    "description": "The content blocks of MCP: texts, images and the like.",
    "properties": {"content": {"type": "array", "items": {"type": "object"}}},
    "required": ["content"],
}
_FAILURE: Final[Schema] = {
    "type": "object",
    "description": "Why a request failed, and what to do next.",
    "properties": {
        "success": {"const": False},
        "results": {"type": "array", "maxItems": 0},
        "message": {"type": "string"},
        "error_type": {"type": "string"},
    },
    "required": ["success", "results", "message", "error_type"],
}
_LIST: Final[Schema] = {
    "type": "object",
    "properties": {"tools": {"type": "array", "items": {"type": "object"}}},
    "required": ["tools"],
}
_FAILURES: Final = {
    "400": "The body is no JSON object, or the arguments do not fit.",
    "403": "The tool is not served here, or not for pages of this origin.",
    "404": "There is no such tool, or what the arguments name does not exist.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "The tool cannot do what was asked.",
    "429": "The tool was called too often.",
    "500": "The tool failed unexpectedly; the log has why under the id in the message.",
    "502": "A service or a store that the tool needs has failed.",
    "504": "The tool did not answer in time.",
}
_UNAUTHORIZED: Final[Schema] = {
    "description": "The request has no token, or one that is not valid.",
    "content": {_JSON: {"schema": {"type": "object"}}},
}


def openapi(tools: Iterable[RegisteredTool], version: str, *, needs_token: bool) -> dict[str, Any]:
    """Return the document for what one caller may use.

    Args:
        needs_token: Requests need a bearer token.
    """
    schemas: dict[str, Schema] = {"failure": _FAILURE, "tools": _LIST}
    paths: dict[str, Any] = {"/tools": {"get": _list_operation()}}
    for item in tools:
        schemas |= _schemas(item)
        paths[f"/tools/{item.published}"] = {"post": _call_operation(item, item.published)}
        if "." in item.declared:
            paths[f"/{item.declared}"] = {"post": _call_operation(item, f"{item.declared}!")}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Tools of standards-mcp", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if needs_token:
        scheme = {"type": "http", "scheme": "bearer"}
        document["components"]["securitySchemes"] = {"token": scheme}
        document["security"] = [{"token": []}]
    return document


def _schemas(item: RegisteredTool) -> dict[str, Schema]:
    arguments, result = f"{item.published}.arguments", f"{item.published}.result"
    # Where a schema stands in the document, its references would lead elsewhere.
    return {
        arguments: plain_object(item.arguments.schema),
        result: plain_object(item.result.schema or _CONTENT),
    }


def _list_operation() -> dict[str, Any]:
    return {
        "operationId": "list_tools",
        "summary": "List the tools",
        "responses": {
            "200": {"description": "The tools, as MCP lists them.", **_body("tools")},
            "401": _UNAUTHORIZED,
        },
    }


def _call_operation(item: RegisteredTool, operation: str) -> dict[str, Any]:
    return {
        "operationId": operation,
        "summary": item.title or item.published,
        "description": item.description,
        "tags": [item.plugin],
        "requestBody": {"required": True, **_body(f"{item.published}.arguments")},
        "responses": {
            "200": {"description": "The answer.", **_body(f"{item.published}.result")},
            "401": _UNAUTHORIZED,
            **{
                status: {"description": why, **_body("failure"), **_retry(status)}
                for status, why in _FAILURES.items()
            },
        },
    }


def _retry(status: str) -> dict[str, Any]:
    if status != "429":
        return {}
    header = {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
    return {"headers": {"Retry-After": header}}


def _body(schema: str) -> dict[str, Any]:
    return {"content": {_JSON: {"schema": {"$ref": f"{_COMPONENTS}{schema}"}}}}
