"""What was sent in sessions, kept for clients whose connection breaks before they have it.

A client of a generation before 2026-07-28 asks for what came after the last event that it has seen,
and so gets the answer of its call. Clients of that generation call again.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

MOST_BYTES: Final = 32 << 20
SESSION_BYTES: Final = 1 << 20
_BYTES_BESIDE: Final = 512
"""What an event takes beside its text, about."""


class _Event(NamedTuple):
    """A message that was sent; one without a text is the beginning of its stream."""

    stream: str
    text: bytes

    @property
    def size(self) -> int:
        # A stream has the id of a request, which is the client's, and may be long.
        return len(self.text) + len(self.stream) + _BYTES_BESIDE


class Events:
    """The events of all sessions of a process.

    Args:
        most_bytes: They take this much; the oldest make room for new ones.
        session_bytes: Those of one session take this much.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, session_bytes: int = SESSION_BYTES) -> None:
        self._most_bytes, self.session_bytes = most_bytes, session_bytes
        self.numbers = count(1)
        self._sessions = OrderedDict[int, SessionEvents]()
        self._bytes = 0

    def add(self, number: int, size: int, session: SessionEvents) -> None:
        """Count an event of a session, which then has room."""
        self._sessions[number] = session
        self._bytes += size
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._sessions))
            self._sessions[oldest].drop(oldest)

    def remove(self, number: int, size: int) -> None:
        """Give the room of an event back."""
        del self._sessions[number]
        self._bytes -= size


class SessionEvents(EventStore):
    """The events of one session, which no other can read."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._kept = OrderedDict[int, _Event]()
        self._bytes = 0
        self._open = set[str]()

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message; None begins a stream. See `EventStore`."""
        number, text = next(self._events.numbers), b""
        if message is not None:
            text = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        is_kept = self._keep(number, _Event(stream_id, text))
        if is_kept and not isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open.add(stream_id)
        else:
            self._open.discard(stream_id)
        return _id_of(number, stream_id)

    def _keep(self, number: int, event: _Event) -> bool:
        if event.size > self._events.session_bytes:
            return False
        while self._bytes + event.size > self._events.session_bytes:
            self.drop(next(iter(self._kept)))
        self._kept[number] = event
        self._bytes += event.size
        self._events.add(number, event.size, self)
        return True

    def drop(self, number: int) -> None:
        """Forget an event, and its stream, which a cancelled call leaves without an answer."""
        event = self._kept.pop(number)
        self._open.discard(event.stream)
        self._bytes -= event.size
        self._events.remove(number, event.size)

    def close(self) -> None:
        """Forget all: the session has ended."""
        for number in list(self._kept):
            self.drop(number)

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Send what came later in the stream of an event. See `EventStore`.

        Returns:
            The stream, or None if nothing more will come in it.
        """
        with suppress(ValueError):
            last, stream = _parts_of(last_event_id)
            for number, event in list(self._kept.items()):
                if number > last and event.stream == stream and event.text:
                    message = jsonrpc_message_adapter.validate_json(event.text, by_name=False)
                    await send_callback(EventMessage(message, _id_of(number, stream)))
            return stream if stream == GET_STREAM_KEY or stream in self._open else None
        return None


def _id_of(number: int, stream: str) -> str:
    # The id of a request is the client's, and may be any text.
    return f"{number}-{stream.encode().hex()}"


def _parts_of(event: str) -> tuple[int, str]:
    number, _, stream = event.partition("-")
    return int(number), bytes.fromhex(stream).decode()
