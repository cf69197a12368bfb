"""What every request passes before its route: its host and origin, its body, and being counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_SECONDS: Final = 30.0
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class KnownHosts:
    """Refuses requests to other hosts, and of pages of other origins.

    A page can give its own name the address of this machine (DNS rebinding). The name that the
    browser then sends is that of the page.

    Args:
        hosts: Names or globs; ``*`` stands for any.
        origins: Origins beside the service's own.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._hosts = [host.casefold() for host in hosts]
        self._origins = {origin.casefold().rstrip("/") for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 421 or 403."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").casefold()
        origin = headers.get("origin", "").casefold()
        if not any(fnmatchcase(_name(host), each) for each in self._hosts):
            refused = PlainTextResponse("this host is not served here", 421)
        elif origin and origin not in self._origins and _authority(origin) != host:
            refused = PlainTextResponse("this origin may not use the service", 403)
        else:
            await self._app(scope, receive, send)
            return
        await refused(scope, receive, send)


def _name(host: str) -> str:
    with suppress(ValueError):
        return urlsplit(f"//{host}").hostname or ""
    return ""


def _authority(origin: str) -> str:
    with suppress(ValueError):
        return urlsplit(origin).netloc
    return ""


class WholeBodies:
    """Lets no request wait for the rest of its body for ever, and one whose client left just end.

    Args:
        seconds: How long the body may take to come.
    """

    def __init__(self, app: ASGIApp, seconds: float = BODY_SECONDS) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 408."""
        deadline = time.monotonic() + self._seconds
        is_complete = scope["type"] != "http"

        async def receive_in_time() -> Message:
            nonlocal is_complete
            if is_complete:
                return await receive()
            message = await asyncio.wait_for(receive(), max(deadline - time.monotonic(), 0))
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            is_complete = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, receive_in_time, send)
        except ClientDisconnect:
            return
        except TimeoutError:
            if is_complete:
                raise
            refused = PlainTextResponse("the request took too long to come", 408)
            await refused(scope, receive, send)


class InFlight:
    """Counts the requests that are being answered, but for streams that a client listens to."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        self._count += 1
        self._idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    async def drained(self, seconds: float) -> int:
        """Wait until all are answered; return how many are not after *seconds*."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return self._count
