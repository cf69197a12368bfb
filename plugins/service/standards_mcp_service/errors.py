"""JSON-RPC errors over HTTP, where the SDK's own do not follow the protocol.

An error has the id of its request, or none if the request has no id; the SDK sends ``null``. A
request of 2026-07-28 without the header for the version is refused; the SDK takes it for an
earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from mcp_types import HEADER_MISMATCH, PROTOCOL_VERSION_META_KEY
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope, Send

_VERSION_HEADER: Final = "mcp-protocol-version"
_NO_ID: Final = b'"id":null'
_ERROR_STATUS: Final = 400


def error_response(message: str, status: int, code: int) -> Response:
    """Return an error without an id, which `with_request_id` adds."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    content = json.dumps(body, separators=(",", ":"))
    return Response(content, status, media_type="application/json")


def version_mismatch(scope: Scope, body: bytes) -> Response | None:
    """Return the refusal of a request whose body alone names a protocol version, or None."""
    # Most requests are read only once, by the SDK.
    if _VERSION_HEADER in Headers(scope=scope) or b"protocolVersion" not in body:
        return None
    meta = _object(_object(_parsed(body).get("params")).get("_meta"))
    if PROTOCOL_VERSION_META_KEY not in meta:
        return None
    message = "the header MCP-Protocol-Version is missing; send the version that _meta names"
    return error_response(message, _ERROR_STATUS, HEADER_MISMATCH)


def with_request_id(send: Send, body: bytes) -> Send:
    """Return *send* with the id of the request in errors that have none.

    Args:
        body: The body of the request.
    """
    start: Message | None = None

    async def answer(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] >= _ERROR_STATUS:
            start = message
            return
        if start is not None:
            content: bytes = message.get("body", b"")
            if _NO_ID in content and not message.get("more_body"):
                content = _with_id(content, body)
                MutableHeaders(raw=start["headers"])["content-length"] = str(len(content))
                message = {**message, "body": content}
            await send(start)
            start = None
        await send(message)

    return answer


def _with_id(content: bytes, body: bytes) -> bytes:
    error = _parsed(content)
    if "id" not in error or error["id"] is not None:
        return content
    number = _parsed(body).get("id")
    is_id = isinstance(number, str | int) and not isinstance(number, bool)
    fields = {key: value for key, value in error.items() if key != "id"}
    mended = fields | ({"id": number} if is_id else {})
    return json.dumps(mended, separators=(",", ":")).encode()


def _parsed(text: bytes) -> Mapping[str, Any]:
    """Return the object in a JSON text, or an empty one."""
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
