"""Middleware for every request: check host, origin and token, track requests and end them."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from fnmatch import translate
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from h11 import LocalProtocolError
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from opentelemetry.context import attach, detach
from opentelemetry.propagate import extract
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from standards_mcp.transports import Answer

from .authorization import EXPIRED

if TYPE_CHECKING:
    from .people.pages import People

log = logging.getLogger("standards_mcp.service")

MCP: Final = "/mcp"
LIVE: Final = "/health/live"
CARD: Final = f"{MCP}/server-card"
_PUBLIC: Final = (LIVE, CARD)
"""Paths without a token, also for hosts and pages that the configuration does not name."""
CANCEL_SCOPE: Final = "cancel_scope"
"""A key in the state of a request; the value is the cancel scope that ends its answer early."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
PRIVATE_PAGE: Final = {
    "cache-control": "no-store",
    # With "no-referrer", browsers would omit the origin of a form, which is checked.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
"""Headers of each page for people."""
CHALLENGE: Final = 'Basic realm="standards-mcp: a token as the password", charset="UTF-8"'
_NOT_SIGNED_IN: Final = (
    "a token is needed, as Authorization: Bearer TOKEN; the administrator can make one with"
    " standards-mcp auth token new NAME"
)
_SESSION_ENDED: Final = "you are not signed in, or no longer; reload the page"
_NOT_VALID: Final = "the token is not valid here; check it, or ask for a new one"
_AUTHORITY: Final = re.compile(
    r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<address>[0-9a-f:.]+)\])(?::\d{1,5})?"
)


# For all routes; the SDK checks its own route only.
def with_known_hosts(
    app: ASGIApp,
    hosts: Collection[str],
    origins: Collection[str],
    is_private: Callable[[], bool],
) -> ASGIApp:
    """Return *app* behind a check for unknown hosts, other origins and unexpected proxies.

    A web page can point its own name to the address of this machine (DNS rebinding). The browser
    then sends the name of the page as the host.

    Args:
        hosts: Names or globs; ``*`` matches any. Other hosts are answered with 421.
        origins: Origins in addition to the service's own, in lower case; others get 403.
        is_private: Returns True if the service accepts only local, unauthenticated callers.
    """
    patterns = [re.compile(translate(host.casefold())) for host in hosts]
    has_warned = False

    def refusal(scope: Scope, headers: Headers) -> Response | None:
        nonlocal has_warned
        host = headers.get("host", "").casefold()
        origin = headers.get("origin", "").casefold()
        name = _name(host)
        if (host and not name) or not any(pattern.match(name) for pattern in patterns):
            return PlainTextResponse("this host is not served here", 421)
        if origin and origin not in origins and not is_own_origin(scope):
            return PlainTextResponse("this origin may not use the service", 403)
        if not is_private() or not _is_forwarded(headers):
            return None
        if not has_warned:
            log.warning(
                "requests of a proxy are refused: make a token, or name the hosts in"
                " [server] allowed_hosts"
            )
        has_warned = True
        return PlainTextResponse("this service accepts local requests only", 421)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        # Probes may know the address only, and pages of any origin may read the card.
        response = None if scope["path"] in _PUBLIC else refusal(scope, Headers(scope=scope))
        await (response or app)(scope, receive, send)

    return answer


def _is_forwarded(headers: Headers) -> bool:
    return any(name in ("forwarded", "via") or name.startswith("x-forwarded-") for name in headers)


def _name(host: str) -> str:
    """Return the name in a ``Host`` header without the port, or an empty string if it is wrong."""
    match = _AUTHORITY.fullmatch(host)
    return match["name"] or match["address"] if match else ""


def is_own_origin(scope: Scope) -> bool:
    """True if the page that sends a request has the scheme and the host of the request itself.

    An unknown proxy may add TLS, so https is accepted, too, but not under a name of this machine.
    """
    headers = Headers(scope=scope)
    host = headers.get("host", "").casefold()
    schemes = {scope["scheme"]} if _name(host) in LOOPBACK else {scope["scheme"], "https"}
    return headers.get("origin", "").casefold() in {f"{scheme}://{host}" for scheme in schemes}


def is_own_page(scope: Scope) -> bool:
    """True if a page of the service itself sends a request, so that it may change something."""
    site = Headers(scope=scope).get("sec-fetch-site")
    return site in (None, "same-origin") and is_own_origin(scope)


def with_authorization(
    app: ASGIApp,
    is_required: Callable[[], bool],
    metadata: AnyHttpUrl | None,
    people: People | None = None,
) -> ASGIApp:
    """Return *app* with 401 for an invalid token, and for a missing one if a token is required.

    A stream ends when its token expires.

    Args:
        metadata: The address of the metadata that names the issuer of tokens (RFC 9728).
        people: Lets people sign in, in place of 401 for a page without a token.
    """
    open_paths = {*_PUBLIC, metadata.path if metadata else None}
    open_paths |= set(people.open_paths) if people else set()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        user = scope["user"]
        # A wrong token is refused, because an anonymous caller may see more than the token's owner.
        has_token = "authorization" in Headers(scope=scope)
        if isinstance(user, AuthenticatedUser):
            _limit_stream(scope, user.access_token.expires_at)
            is_authorized = True
        else:
            is_authorized = not has_token and not is_required()
            if has_token:
                client = str(scope["client"][0]) if scope["client"] else ""  # none at a Unix socket
                reason = "expired token" if EXPIRED in scope["state"] else "token"
                log.info("a request is refused", extra={"client": client, "reason": reason})
        response = app
        if not is_authorized and scope["path"] not in open_paths:
            # No cookie counts at /mcp, so a sign-in would lead back there for ever.
            is_page = _is_for_page(scope) and scope["path"] != MCP
            if people and not has_token and is_page:
                response = people.begin_response(scope)
            else:
                missing = _SESSION_ENDED if people and is_own_page(scope) else _NOT_SIGNED_IN
                response = _unauthorized(scope, metadata, None if has_token else missing)
        await response(scope, receive, send)

    return answer


def _unauthorized(scope: Scope, metadata: AnyHttpUrl | None, missing: str | None) -> Response:
    """Return the answer to a request without a valid token (RFC 6750).

    Args:
        missing: The message if the request has no token; None: its token is wrong.
    """
    error, why = "invalid_token", _NOT_VALID
    if expired := scope["state"].get(EXPIRED):
        why = f"the token expired at {expired}; ask for a new one"
    challenge = [f'error="{error}"', f'error_description="{why}"']
    if missing:  # the RFC wants no error in the challenge then
        error, why, challenge = "missing_token", missing, ['realm="standards-mcp"']
    if metadata:
        challenge.append(f'resource_metadata="{metadata}"')
    headers = {"www-authenticate": f"Bearer {', '.join(challenge)}"}
    refusal = JSONResponse({"error": error, "error_description": why}, 401, headers)
    if _is_for_page(scope):
        refusal.headers.append("www-authenticate", CHALLENGE)  # the browser asks its user
    return refusal


def _is_for_page(scope: Scope) -> bool:
    """True if a browser requests a page for its user."""
    return scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")


def _limit_stream(scope: Scope, expires: int | None) -> None:
    """End a stream when its token expires; calls are still answered."""
    if expires is not None and _is_stream(scope):
        cancel_scope: anyio.CancelScope = scope["state"][CANCEL_SCOPE]
        cancel_scope.deadline = anyio.current_time() + expires - time.time()


def with_trace_context(app: ASGIApp) -> ASGIApp:
    """Return *app* with spans that continue the trace in the headers of a request.

    The SDK gives precedence to a trace in ``_meta``.
    """

    async def continue_trace(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        token = attach(extract(Headers(scope=scope)))
        try:
            await app(scope, receive, send)
        finally:
            detach(token)

    return continue_trace


class InFlight:
    """Track requests, and end them at shutdown: streams at once, calls after a grace time."""

    def __init__(self) -> None:
        self._calls, self._streams = set[anyio.CancelScope](), set[anyio.CancelScope]()
        self._is_ending = False
        self._idle = asyncio.Event()
        self._idle.set()

    def tracked(self, app: ASGIApp) -> ASGIApp:
        """Return *app* with its requests tracked, and with 503 for new ones during shutdown."""
        return partial(self._track, app)

    async def _track(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        response = Answer(send)
        if self._is_ending:
            await response.finish()
            return
        group = self._streams if _is_stream(scope) else self._calls
        with anyio.CancelScope() as cancel_scope:
            scope["state"][CANCEL_SCOPE] = cancel_scope
            group.add(cancel_scope)
            self._update_idle()
            try:
                await app(scope, receive, response.send)
            except LocalProtocolError:
                pass  # the client violated HTTP, and uvicorn has answered
            finally:
                group.discard(cancel_scope)
                self._update_idle()
        if cancel_scope.cancelled_caught:
            await response.finish()

    @property
    def requests(self) -> int:
        """Number of requests in flight, not counting streams."""
        return len(self._calls)

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return len(self._streams)

    def _update_idle(self) -> None:
        if self._calls:
            self._idle.clear()
        else:
            self._idle.set()

    async def end(self, seconds: float) -> int:
        """Refuse new requests, end all streams, and wait until all calls are answered.

        Returns:
            The number of calls that were cancelled after *seconds*.
        """
        self._is_ending = True
        for stream in list(self._streams):
            stream.cancel()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        late = list(self._calls)
        for call in late:
            call.cancel()
        return len(late)


def _is_stream(scope: Scope) -> bool:
    """True if a request opens a stream of messages, in any version of the protocol."""
    if scope["type"] != "http":
        return False
    return opens_change_stream(scope) or (scope["method"] == "GET" and scope["path"] == MCP)


def opens_change_stream(scope: Scope) -> bool:
    """True if a client of 2026-07-28 opens a stream of changes."""
    return Headers(scope=scope).get("mcp-method") == "subscriptions/listen"
