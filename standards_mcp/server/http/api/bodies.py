"""The bodies of requests: read whole, within their limit, before anything else is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message


async def with_body(request: Request, most: int) -> Request:
    """Return the request with its whole body at hand.

    Args:
        most: How many bytes it may have.

    Raises:
        HTTPException: 413, for one that has more.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise HTTPException(413, f"the body of a request may have {most:,} bytes here")
    held: list[Message] = [{"type": "http.request", "body": bytes(body)}]

    async def receive() -> Message:
        return held.pop() if held else await request.receive()

    return Request(request.scope, receive)


def has_more_values(body: bytes, most: int) -> bool:
    """True if a JSON text has more than about *most* values, which it would cost time to parse."""
    if _values(body) <= most:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * (most + 1):  # a value has two texts at most: itself and its key
        return True
    return _values(b"".join(unescaped.split(b'"')[::2])) > most


def _values(text: bytes) -> int:
    """Return how many values a JSON text has outside of its texts; brackets need no commas."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def media_type(request: Request) -> str:
    """Return the media type of the body in lower case, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().casefold()


@asynccontextmanager
async def while_connected(request: Request) -> AsyncGenerator[None]:
    """Cancel what is done in the context when the client of a request, whose body was read, leaves.

    It takes what the request receives, so the body must not be waiting there.

    Raises:
        ClientDisconnect: It has left.
    """
    with anyio.CancelScope() as waiting:
        watching = asyncio.create_task(_wait_for_end(request, waiting))
        try:
            yield
        finally:
            watching.cancel()
    if waiting.cancelled_caught:
        raise ClientDisconnect


async def _wait_for_end(request: Request, waiting: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    waiting.cancel()
