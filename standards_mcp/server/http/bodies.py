"""HTTP bodies: read requests within a size limit, and answer failures as JSON."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pydantic_core
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message

from standards_mcp.contributions.results import error_result

_ENVELOPE: Final = frozenset(("success", "results", "message", "error_type"))
_DEFAULT_STATUS: Final = 422
_STATUS: Final = {
    "invalid_input": 400,
    "disabled": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal_error": 500,
    "api_error": 502,
    "timeout": 504,
}
_UNAVAILABLE: Final = {"not_audited": 503}  # not above: a 503 of a plugin has other reasons
_WITHOUT_BODY: Final = (204, 304)
CLIENT_LEFT: Final = 499
"""The status in logs and metrics if the client left before the answer; HTTP does not define it."""
_ERROR_TYPES: Final = {status: error_type for error_type, status in _STATUS.items()}


async def with_body(request: Request, most: int) -> Request:
    """Return the request after its whole body has been read.

    Args:
        most: Size limit of the body in bytes.

    Raises:
        HTTPException: 413, if the body is larger.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise HTTPException(413, f"the body of a request may have at most {most:,} bytes")
    unread: list[Message] = [{"type": "http.request", "body": bytes(body)}]

    async def receive() -> Message:
        return unread.pop() if unread else await request.receive()

    return Request(request.scope, receive)


def has_more_values(body: bytes, most: int) -> bool:
    """True if a JSON text has more than about *most* values; this is faster than to parse it."""
    if _count_values(body) <= most:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * (most + 1):  # a value has two texts at most: itself and its key
        return True
    return _count_values(b"".join(unescaped.split(b'"')[::2])) > most


def _count_values(text: bytes) -> int:
    """Return about the number of values in a JSON text: of its commas and opening brackets."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def media_type(request: Request) -> str:
    """Return the media type of the body in lower case, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().casefold()


@asynccontextmanager
async def while_connected(request: Request) -> AsyncGenerator[None]:
    """Cancel the work in the context when the client leaves.

    Read the body first, because the context discards all later parts of the request.

    Raises:
        ClientDisconnect: The client has left.
    """
    with anyio.CancelScope() as cancel_scope:
        watcher = asyncio.create_task(_cancel_at_end(request, cancel_scope))
        try:
            yield
        finally:
            watcher.cancel()
    if cancel_scope.cancelled_caught:
        raise ClientDisconnect


async def _cancel_at_end(request: Request, cancel_scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    cancel_scope.cancel()


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return JSON data as a response."""
    return Response(pydantic_core.to_json(body), status, headers, "application/json")


def tool_failure(envelope: Mapping[str, Any] | None, text: str) -> Response:
    """Return the response of a tool that failed, with the status of its type of error.

    Args:
        envelope: The structured answer. A tool of another server may have none, or another shape.
        text: The answer as text.
    """
    if envelope is None or not envelope.keys() >= _ENVELOPE:
        return failure_response("tool_error", text)
    status = (_STATUS | _UNAVAILABLE).get(str(envelope["error_type"]), _DEFAULT_STATUS)
    seconds, headers = envelope.get("retry_after"), dict[str, str]()
    if isinstance(seconds, int | float) and 0 < seconds < math.inf:
        headers["retry-after"] = str(math.ceil(seconds))
    return json_response(envelope, status, headers)


def failure_response(
    error_type: str, message: str, data: Mapping[str, Any] | None = None
) -> Response:
    """Return the response for an error of this type; see `standards_mcp.ToolError`."""
    return tool_failure(error_result(error_type, message, data).structured, message)


async def client_left(_: Request, exc: Exception) -> Response:
    """Return a response for logs and metrics only: the client left before the request was read."""
    del exc
    return Response(status_code=CLIENT_LEFT)


async def refused(_: Request, exc: Exception) -> Response:
    """Return the response for a request that reached no tool or route, such as an unknown path."""
    assert isinstance(exc, HTTPException)  # noqa: S101  - the app registers it for this type only
    if exc.status_code in _WITHOUT_BODY:
        return Response(status_code=exc.status_code, headers=exc.headers)
    error_type = _ERROR_TYPES.get(exc.status_code, "tool_error")
    body = error_result(error_type, exc.detail).structured or {}
    return json_response(body, exc.status_code, exc.headers)
