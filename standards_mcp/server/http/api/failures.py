"""Failures as responses: the envelope in which tools fail, with a status by its kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import pydantic_core
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from standards_mcp.contributions.results import error_result

_ENVELOPE: Final = frozenset(("success", "results", "message", "error_type"))
_OTHER: Final = 422
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
_UNAVAILABLE: Final = {"not_audited": 503}  # that of a plugin has other causes
_WITHOUT_BODY: Final = (204, 304)
_KIND: Final = {status: kind for kind, status in _STATUS.items()}


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return JSON data as a response."""
    return Response(pydantic_core.to_json(body), status, headers, "application/json")


def failed(envelope: Mapping[str, Any] | None, text: str) -> Response:
    """Return the response for a tool that failed.

    Args:
        envelope: What it answered with; another server's tool may have none, or something else.
        text: The same in words.
    """
    if envelope is None or not envelope.keys() >= _ENVELOPE:
        return failed_with("tool_error", text)
    status = (_STATUS | _UNAVAILABLE).get(str(envelope["error_type"]), _OTHER)
    return json_response(envelope, status, _retry(envelope.get("retry_after")))


def failed_with(error_type: str, message: str, data: Mapping[str, Any] | None = None) -> Response:
    """Return the response for a failure of this type; see `standards_mcp.ToolError`."""
    return failed(error_result(error_type, message, data).structured, message)


async def refused(_: Request, exc: Exception) -> Response:
    """Return the response for a request that no tool or route has failed, such as a wrong path."""
    assert isinstance(exc, HTTPException)  # noqa: S101  - the app asks for these alone
    if exc.status_code in _WITHOUT_BODY:
        return Response(status_code=exc.status_code, headers=exc.headers)
    kind = _KIND.get(exc.status_code, "tool_error")
    body = error_result(kind, exc.detail).structured or {}
    return json_response(body, exc.status_code, exc.headers)


def _retry(seconds: object) -> dict[str, str]:
    if isinstance(seconds, int | float) and 0 < seconds < math.inf:
        return {"retry-after": str(math.ceil(seconds))}
    return {}
