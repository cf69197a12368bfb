"""What every request passes: its host and origin, its body, its token's end, and being counted."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from fnmatch import translate
from typing import Final

import anyio
from h11 import LocalProtocolError
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

MCP: Final = "/mcp"
LIVE: Final = "/health/live"
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_AUTHORITY: Final = re.compile(
    r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<address>[0-9a-f:.]+)\])(?::\d{1,5})?"
)


class KnownHosts:
    """Refuses requests to other hosts, and of pages of other origins.

    A page can give its own name the address of this machine (DNS rebinding). The name that the
    browser then sends is that of the page.

    Args:
        hosts: Names or globs; ``*`` stands for any.
        origins: Origins beside the service's own, in lower case.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._hosts = [re.compile(translate(host.casefold())) for host in hosts]
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 421 or 403."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").casefold()
        origin = headers.get("origin", "").casefold()
        if scope["path"] == LIVE:  # those who probe it know an address only
            await self._app(scope, receive, send)
            return
        name = _name(host)
        if (host and not name) or not any(each.match(name) for each in self._hosts):
            refused = PlainTextResponse("this host is not served here", 421)
        elif origin and origin not in self._origins and not is_own_origin(scope):
            refused = PlainTextResponse("this origin may not use the service", 403)
        else:
            await self._app(scope, receive, send)
            return
        await refused(scope, receive, send)


class NotForwarded:
    """Refuses what a proxy passes on, where nothing says that others than this machine may come.

    Args:
        is_private: Tells whether the service is for programs of this machine, and asks nobody who
            they are.
    """

    def __init__(self, app: ASGIApp, is_private: Callable[[], bool]) -> None:
        self._app, self._is_private = app, is_private
        self._is_told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 421."""
        if not self._is_private() or scope["path"] == LIVE or not _is_forwarded(scope):
            await self._app(scope, receive, send)
            return
        if not self._is_told:
            log.warning(
                "requests of a proxy are refused: make a token, or name the hosts in"
                " [server] allowed_hosts"
            )
        self._is_told = True
        refused = PlainTextResponse("this service is for programs of its own machine", 421)
        await refused(scope, receive, send)


def _is_forwarded(scope: Scope) -> bool:
    names = Headers(scope=scope).keys()
    return any(each in ("forwarded", "via") or each.startswith("x-forwarded-") for each in names)


def _name(host: str) -> str:
    """Return the name in a ``Host`` header without the port, or an empty string if it is wrong."""
    match = _AUTHORITY.fullmatch(host)
    return match["name"] or match["address"] if match else ""


def is_own_origin(scope: Scope) -> bool:
    """True if the page that sends a request has the scheme and the host of the request itself.

    A proxy that this service does not know may speak TLS before it, but not under a name of this
    machine.
    """
    headers = Headers(scope=scope)
    host = headers.get("host", "").casefold()
    schemes = {scope["scheme"]} if _name(host) in LOOPBACK else {scope["scheme"], "https"}
    return headers.get("origin", "").casefold() in {f"{each}://{host}" for each in schemes}


class WholeBodies:
    """Ends a request without an error if its client leaves before the whole body has come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        is_complete = scope["type"] != "http"

        async def receive_whole() -> Message:
            nonlocal is_complete
            message = await receive()
            if not is_complete:
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                is_complete = not message.get("more_body", False)
            return message

        with suppress(ClientDisconnect):
            await self._app(scope, receive_whole, send)


class InFlight:
    """Knows what is being answered, and ends it: streams at once, calls after their time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._calls, self._streams = set[anyio.CancelScope](), set[anyio.CancelScope]()
        self._is_ending = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer 503 once the end has begun."""
        response = Answer(send)
        if self._is_ending:
            await response.finish()
            return
        answered = self._streams if _is_stream(scope) else self._calls
        with anyio.CancelScope() as cancelling:
            answered.add(cancelling)
            self._note()
            try:
                await self._app(scope, receive, response.send)
            except LocalProtocolError:
                pass  # the client broke the rules of HTTP, which uvicorn has told it
            finally:
                answered.discard(cancelling)
                self._note()
        if cancelling.cancelled_caught:
            await response.finish()

    @property
    def requests(self) -> int:
        """How many requests are being answered, without streams."""
        return len(self._calls)

    @property
    def streams(self) -> int:
        """How many clients listen to what may come."""
        return len(self._streams)

    def _note(self) -> None:
        if self._calls:
            self._idle.clear()
        else:
            self._idle.set()

    async def end(self, seconds: float) -> int:
        """Take no more requests, and wait until all calls are answered.

        Returns:
            How many were given up after *seconds*.
        """
        self._is_ending = True
        for each in list(self._streams):
            each.cancel()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        left = list(self._calls)
        for each in left:
            each.cancel()
        return len(left)


def _is_stream(scope: Scope) -> bool:
    """Tell whether a client listens to what may come, in the way of its generation."""
    if scope["type"] != "http":
        return False
    return listens(scope) or (scope["method"] == "GET" and scope["path"] == MCP)


def listens(scope: Scope) -> bool:
    """Tell whether a client of 2026-07-28 opens a stream of changes."""
    return Headers(scope=scope).get("mcp-method") == "subscriptions/listen"


class UntilExpiry:
    """Ends a stream when the token with which it was opened expires; calls are answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        user = scope.get("user")
        expires = user.access_token.expires_at if isinstance(user, AuthenticatedUser) else None
        if expires is None or not _is_stream(scope):
            await self._app(scope, receive, send)
            return
        response = Answer(send)
        with anyio.move_on_after(expires - time.time()) as ending:
            await self._app(scope, receive, response.send)
        if ending.cancelled_caught:
            await response.finish()


class Answer:
    """An answer that can be brought to its end whatever has been sent of it.

    A stream of events may end anywhere. Anything else that ended so would be taken for whole, and
    has its connection closed.
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
        """Send what is missing of it, if that can be told from the rest."""
        if not self.has_begun:
            headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
            await self._send({"type": "http.response.start", "status": 503, "headers": headers})
            await self._send({"type": "http.response.body", "body": b"the service is ending"})
        elif self._is_stream and not self.has_ended:
            await self._send({"type": "http.response.body", "body": b""})
