"""HTTP: read bodies within a size limit, answer failures as JSON, and end answers early."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pydantic_core
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Send

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


async def refused(_: Request, exc: Exception) -> Response:
    """Return the response for a request that reached no tool or route, such as an unknown path."""
    assert isinstance(exc, HTTPException)  # noqa: S101  - the app registers it for this type only
    if exc.status_code in _WITHOUT_BODY:
        return Response(status_code=exc.status_code, headers=exc.headers)
    error_type = _ERROR_TYPES.get(exc.status_code, "tool_error")
    body = error_result(error_type, exc.detail).structured or {}
    return json_response(body, exc.status_code, exc.headers)


class Answer:
    """An answer that can be ended early.

    A stream of events may end anywhere. Any other answer that has begun would look complete, so
    `finish` leaves it incomplete, and uvicorn closes the connection.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = self.has_ended = self._is_stream = False

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        self.has_begun = True
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self._is_stream = kind.startswith("text/event-stream")
        await self._send(message)
        self.has_ended = message["type"] == "http.response.body" and not message.get("more_body")

    async def finish(self) -> None:
        """End the answer: with 503 if it has not begun, or with the end of a stream of events."""
        if not self.has_begun:
            headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
            await self._send({"type": "http.response.start", "status": 503, "headers": headers})
            await self._send({"type": "http.response.body", "body": b"the service is ending"})
        elif self._is_stream and not self.has_ended:
            await self._send({"type": "http.response.body", "body": b""})
