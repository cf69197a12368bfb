"""Sessions of clients before 2026-07-28: a limit for each client, and resumption after a break.

A client whose connection breaks asks for the messages after the last event that it has received,
and so gets the answer of its call. Clients of 2026-07-28 have no sessions; they call again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    AuthorizationContext,
    authorization_context,
)
from mcp.server.streamable_http import (
    GET_STREAM_KEY,
    EventCallback,
    EventMessage,
    EventStore,
    StreamableHTTPServerTransport,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from standards_mcp.transports import HttpSettings

from .bodies import has_more_values
from .errors import error_response, version_mismatch, with_request_id
from .guards import CANCEL_SCOPE, opens_change_stream

ALL_EVENTS_BYTES: Final = 32 << 20
SESSION_EVENTS_BYTES: Final = 1 << 20
_EVENT_OVERHEAD: Final = 512
"""Approximate memory of an event in addition to its text."""
_RETRY_MILLISECONDS: Final = 1000
"""Time after which a client resumes a broken stream."""


# The SDK keeps sessions and their owners in private attributes. Only this module reads them.
class Sessions(StreamableHTTPSessionManager):
    """The SDK's session manager with a limit for each client and a store for each session.

    A client is the holder of a token. Callers without a token cannot be told apart, so only the
    limit of all sessions together applies to them.

    Args:
        most_values: Returns the highest number of values in the JSON of a request.
        step_up: Returns the refusal of a request that needs another scope, or None.
    """

    def __init__(
        self,
        server: Server[Any],
        settings: HttpSettings,
        most_values: Callable[[], int],
        step_up: Callable[[Scope, bytes], Awaitable[Response | None]],
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
        self._step_up = step_up
        self._events_of = dict[str, SessionEvents]()
        self._listening = dict[anyio.CancelScope, AuthorizationContext | None]()

    @property
    def count(self) -> int:
        """Number of open sessions."""
        return len(self._server_instances)

    def by_client(self) -> Counter[str]:
        """Return the number of sessions by client; callers without a token have an empty name."""
        return Counter(
            owner["client_id"] if (owner := self._session_owners.get(name)) else ""
            for name in self._server_instances
        )

    def close_where(self, is_revoked: Callable[[AuthorizationContext | None], bool]) -> None:
        """Close the sessions and streams of revoked owners; None is a caller without a token."""
        for name, session in list(self._server_instances.items()):
            if self._task_group and is_revoked(self._session_owners.get(name)):
                self._task_group.start_soon(self._discard_session, name, session)
        for listening, owner in list(self._listening.items()):
            if is_revoked(owner):
                listening.cancel()

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        # The base class holds a lock here, so simultaneous requests count each other's sessions.
        held = sum(owner == requestor for owner in self._session_owners.values())
        if requestor is not None and held >= self._share:
            raise HTTPException(429, self._limit_message("sessions"))
        if self.json_response:  # a JSON response has no events
            return super()._admit_session(requestor)
        # One store for each session: streams are named by request ids, which other sessions repeat.
        self.event_store = events = SessionEvents(self._event_bytes)
        session = super()._admit_session(requestor)
        if session is not None and session.mcp_session_id is not None:
            self._events_of[session.mcp_session_id] = events
            for others in self._events_of.values():
                others.trim()
        return session

    def _event_bytes(self) -> int:
        return min(SESSION_EVENTS_BYTES, ALL_EVENTS_BYTES // max(1, len(self._events_of)))

    async def _discard_session(
        self, session_id: str, transport: StreamableHTTPServerTransport
    ) -> None:
        self._events_of.pop(session_id, None)
        await super()._discard_session(session_id, transport)

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        unread = [await receive()]  # the body, as far as the base class has read it
        if unread[0]["type"] == "http.disconnect" or unread[0].get("more_body"):
            raise ClientDisconnect

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        body: bytes = unread[0].get("body", b"")
        refusal: Response | None
        if has_more_values(body, most := self._most_values()):
            message = f"the request has more than {most:,} values; send fewer in one call"
            refusal, body = error_response(message, 413, INVALID_REQUEST), b""  # not to be parsed
        else:
            refusal = version_mismatch(scope, body) or await self._step_up(scope, body)
        send = with_request_id(send, body)
        if refusal:
            await refusal(scope, replay, send)
        elif opens_change_stream(scope):
            await self._handle_stream(scope, replay, send)
        else:
            await super()._handle_request(scope, replay, send)

    async def _handle_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream of changes of 2026-07-28, within the share of its client."""
        user = scope.get("user")
        owner = authorization_context(user) if isinstance(user, AuthenticatedUser) else None
        held = sum(other == owner for other in self._listening.values())
        if owner is not None and held >= self._share:
            message = self._limit_message("streams of changes")
            await error_response(message, 429, INVALID_REQUEST)(scope, receive, send)
            return
        listening: anyio.CancelScope = scope["state"][CANCEL_SCOPE]
        self._listening[listening] = owner
        try:
            await super()._handle_request(scope, receive, send)
        finally:
            del self._listening[listening]

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super()._handle_stateful_request(scope, receive, send)
        except HTTPException as exc:
            await error_response(exc.detail, exc.status_code, INVALID_REQUEST)(scope, receive, send)

    def _limit_message(self, kind: str) -> str:
        share = f"this token has {self._share} {kind} open, and may not have more"
        return f"{share}; end some of them"


class _Event(NamedTuple):
    """A message of a stream; the event that begins a stream has no text."""

    number: int
    stream: str
    text: bytes
    ends_stream: bool

    @property
    def size(self) -> int:
        # A stream's name is the id of a request: the client chooses it, and it may be long.
        return len(self.text) + len(self.stream) + _EVENT_OVERHEAD


class SessionEvents(EventStore):
    """The last events of one session, hidden from other sessions.

    Args:
        most_bytes: Returns the memory limit of the events.
    """

    def __init__(self, most_bytes: Callable[[], int]) -> None:
        self._most_bytes = most_bytes
        self._numbers = count(1)
        self._stored = deque[_Event]()
        self._bytes = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Store a message; None begins a stream. See `EventStore`."""
        # Stored as text, because its size is known.
        text = message.model_dump_json(by_alias=True, exclude_unset=True) if message else ""
        ends_stream = isinstance(message, JSONRPCResponse | JSONRPCError)
        event = _Event(next(self._numbers), stream_id, text.encode(), ends_stream)
        self._stored.append(event)
        self._bytes += event.size
        self.trim()
        return _event_id(event.number, stream_id)

    def trim(self) -> None:
        """Drop the oldest events beyond the limit."""
        while self._bytes > self._most_bytes():
            self._bytes -= self._stored.popleft().size

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Send the later messages in the stream of an event. See `EventStore`.

        Returns:
            The stream, or None if the stream has ended.
        """
        # An answer that comes between the replay and the moment at which the SDK listens again is
        # sent when the client asks the next time.
        with suppress(ValueError):
            text, _, encoded = last_event_id.partition("-")
            last, stream = int(text), bytes.fromhex(encoded).decode()
            for event in list(self._stored):
                if event.number > last and event.stream == stream and event.text:
                    message = jsonrpc_message_adapter.validate_json(event.text, by_name=False)
                    await send_callback(EventMessage(message, _event_id(event.number, stream)))
            return stream if stream == GET_STREAM_KEY or self._is_open(stream) else None
        return None

    def _is_open(self, stream: str) -> bool:
        """True if the stream has not ended; a stream without stored events counts as ended."""
        events = [event for event in self._stored if event.stream == stream]
        return bool(events) and not events[-1].ends_stream


def _event_id(number: int, stream: str) -> str:
    # In hexadecimal, because the client may use any text as the id of its request.
    return f"{number}-{stream.encode().hex()}"
