"""The sessions of clients before 2026-07-28, and the share that one client may have of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    AuthorizationContext,
    authorization_context,
)
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from standards_mcp.config.models.http import HttpSettings

from .api.bodies import has_more_values
from .events import Events, SessionEvents
from .guards import Answer, listens

_RETRY_MILLISECONDS: Final = 1000
"""How long a client waits before it resumes a stream that broke."""
_NO_SESSION: Final = b"Missing session ID"
_INITIALIZE_FIRST: Final = (
    b"Missing session ID: send initialize first, and the mcp-session-id of its answer with each "
    b"request after it"
)


class Sessions(StreamableHTTPSessionManager):
    """Opens, finds and closes sessions.

    A client is the holder of a token. Those who come without one are not told apart, and share all
    the room there is.

    Args:
        most_values: Returns how many values the JSON of a request may have.
    """

    def __init__(
        self, server: Server[Any], settings: HttpSettings, most_values: Callable[[], int]
    ) -> None:
        super().__init__(
            server,
            json_response=settings.json_response,
            stateless=settings.stateless,
            session_idle_timeout=settings.session_idle,
            max_request_body_size=settings.max_request_bytes,
            max_sessions=settings.max_sessions,
            retry_interval=_RETRY_MILLISECONDS,
        )
        self._share, self._most_values = settings.session_share, most_values
        self._events = Events()
        self._events_of = dict[str, SessionEvents]()
        self._listening = dict[anyio.CancelScope, AuthorizationContext | None]()

    @property
    def count(self) -> int:
        """How many sessions are open."""
        return len(self._server_instances)

    def by_client(self) -> Counter[str]:
        """Return how many sessions each client has; those without a token have an empty name."""
        return Counter(
            owner["client_id"] if (owner := self._session_owners.get(name)) else ""
            for name in self._server_instances
        )

    def close_where(self, is_revoked: Callable[[AuthorizationContext | None], bool]) -> None:
        """Close what those have opened who are none any more; None is anybody without a token."""
        for name, session in list(self._server_instances.items()):
            if self._task_group and is_revoked(self._session_owners.get(name)):
                self._task_group.start_soon(self._discard_session, name, session)
        for listening, owner in list(self._listening.items()):
            if is_revoked(owner):
                listening.cancel()

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        # Under the lock of the base class: of requests that come at once, each counts the others.
        held = sum(each == requestor for each in self._session_owners.values())
        if requestor is not None and held >= self._share:
            raise _ShareUsedError
        if self.json_response:  # which has no events
            return super()._admit_session(requestor)
        # Of its own, since streams have the ids of requests, which other sessions have, too.
        self.event_store = events = SessionEvents(self._events)
        session = super()._admit_session(requestor)
        if session is not None and session.mcp_session_id is not None:
            self._events_of[session.mcp_session_id] = events
        return session

    async def _discard_session(
        self, session_id: str, transport: StreamableHTTPServerTransport
    ) -> None:
        if events := self._events_of.pop(session_id, None):
            events.close()
        await super()._discard_session(session_id, transport)

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole = [await receive()]  # the base class has read the body

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        if has_more_values(whole[0].get("body", b""), most := self._most_values()):
            message = f"the request has more than {most:,} values; send fewer in one call"
            await _refused(message, 413)(scope, replay, send)
        else:
            await self._handle(scope, replay, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not listens(scope):
            await super()._handle_request(scope, receive, send)
            return
        owner = _owner(scope)
        held = sum(each == owner for each in self._listening.values())
        if owner is not None and held >= self._share:
            await _too_many("streams of changes", self._share)(scope, receive, send)
            return
        answer = Answer(send)
        with anyio.CancelScope() as listening:
            self._listening[listening] = owner
            try:
                await super()._handle_request(scope, receive, answer.send)
            finally:
                del self._listening[listening]
        if listening.cancelled_caught:
            await answer.finish()

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super()._handle_stateful_request(scope, receive, _explaining(send))
        except _ShareUsedError:
            await _too_many("sessions", self._share)(scope, receive, send)


def _explaining(send: Send) -> Send:
    """Return *send* with what a client without a session has to do in the SDK's refusal of it."""
    refusals: list[Message] = []

    async def explain(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.BAD_REQUEST:
            refusals.append(message)
            return
        if refusals:
            start = refusals.pop()
            body: bytes = message.get("body", b"").replace(_NO_SESSION, _INITIALIZE_FIRST)
            MutableHeaders(scope=start)["content-length"] = str(len(body))
            await send(start)
            message = {**message, "body": body}
        await send(message)

    return explain


class _ShareUsedError(Exception):
    """A client has as many sessions as it may have."""


def _owner(scope: Scope) -> AuthorizationContext | None:
    user = scope.get("user")
    return authorization_context(user) if isinstance(user, AuthenticatedUser) else None


def _too_many(what: str, share: int) -> Response:
    message = f"this token has {share} {what} open, and may not have more; end some of them"
    return _refused(message, 429)


def _refused(message: str, status: int) -> Response:
    error = JSONRPCError(
        jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=message)
    )
    content = error.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(content, status, media_type="application/json")
