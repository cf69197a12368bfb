"""The bodies of requests: their media types, forms, and a bound on the values in JSON."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from standards_mcp.transports import CLIENT_LEFT, with_body

_FORM: Final = "application/x-www-form-urlencoded"
_FORM_BYTES: Final = 16_384


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


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form; by its name, the last of several with the same name.

    Raises:
        HTTPException: The body is not a form, or too long.
    """
    if media_type(request) != _FORM:
        raise HTTPException(415, "This address accepts forms only.")
    body = await (await with_body(request, _FORM_BYTES)).body()
    try:
        return ImmutableMultiDict(parse_qsl(body.decode(), keep_blank_values=True))
    except ValueError as exc:
        raise HTTPException(400, f"This form cannot be read: {exc}") from None


async def client_left(_: Request, exc: Exception) -> Response:
    """Return a response for logs and metrics only: the client left before the request was read."""
    del exc
    return Response(status_code=CLIENT_LEFT)
