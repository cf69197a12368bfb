"""Limits of HTTP/1.1 on the wire: bytes, parts and time of a request, and a bounded close.

uvicorn goes on reading a body after the answer, however long it is, and parses each of its chunks,
so that a client without a token could occupy the process.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

_FRAMING_BYTES: Final = 65_536
# Each part costs about 8 microseconds. Segments of TCP have some 500 bytes or more.
_MAX_PARTS: Final = 1_000
_MIN_PART_BYTES: Final = 256
_MAX_HEADERS: Final = 100
_MAX_GATHERED_BYTES: Final = 65_536
_UNREAD_STATES: Final = (h11.SEND_BODY, h11.ERROR)
_INCOMPLETE_STATES: Final = (h11.IDLE, *_UNREAD_STATES)
_CLOSE_HEADER: Final = (b"connection", b"close")


EXTEND: Final = "extend_limits"
"""A key in the state of a request: a function that raises its limits, in bytes and seconds."""


class BoundedProtocol(H11Protocol):
    """Refuse a request that exceeds a limit on the wire, and stop reading after an early answer.

    Attributes:
        most_bytes: Size limit of the body of a request.
        seconds: Time limit for a request from its first byte to its last, and for the wait before.
        linger: Seconds in which further data is discarded after an early answer.
    """

    most_bytes: ClassVar[int]
    seconds: ClassVar[float] = 30.0
    linger: ClassVar[float] = 2.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn: _Connection = _Connection(self.most_bytes)
        self.app_state = {**self.app_state, EXTEND: self._extend}
        self._timer: asyncio.TimerHandle | None = None
        self._has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(cast("asyncio.Transport", _Transport(transport, self)))
        self._update_timer()

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request."""
        if not self._has_begun:  # the time limit of a request starts at its first byte
            self._stop_timer()
            self._has_begun = True
        super().data_received(data)
        self._update_timer()

    def _extend(self, most_bytes: int, seconds: float) -> None:
        """Let the current request have more bytes and time, for a caller who may upload a file."""
        self.conn.extend(most_bytes)
        if self._timer:  # the body has not arrived yet
            self._stop_timer()
            self._timer = self.loop.call_later(seconds, self._time_out)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._has_begun = False
        super().on_response_complete()
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed, or that exceeds a limit."""
        status, text = self.conn.refusal or (400, msg)
        self._refuse(status, text)

    def _update_timer(self) -> None:
        if self.conn.their_state not in _INCOMPLETE_STATES or self.transport.is_closing():
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()  # no request has begun
        else:
            self._refuse(408, "the request did not arrive in time")

    def _refuse(self, status: int, text: str) -> None:
        if self.cycle and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = text.encode()
            headers = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", str(len(body)).encode()),
            ]
            reason = STATUS_PHRASES[status]
            for event in (
                h11.Response(status_code=status, headers=headers, reason=reason),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Connection(h11.Connection):
    """Bound the headers and the body of a request, and close after an early answer.

    Attributes:
        refusal: The status and the text for a request that exceeds a limit.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__(h11.SERVER)
        self._usual_wire_bytes = most_bytes + most_bytes // 4 + _FRAMING_BYTES
        self._max_wire_bytes = self._usual_wire_bytes
        self._wire_bytes = self._body_bytes = self._parts = 0
        self.refusal: tuple[int, str] | None = None
        # Count the lines of headers and trailers first: to parse one takes two microseconds.
        self._extract_lines = self._receive_buffer.maybe_extract_lines
        self._receive_buffer.maybe_extract_lines = self._few_lines  # type: ignore[method-assign]

    def extend(self, most_bytes: int) -> None:
        """Let the body of the current request have so many bytes."""
        self._max_wire_bytes = most_bytes + most_bytes // 4 + _FRAMING_BYTES

    def receive_data(self, data: bytes) -> None:
        """Count the received bytes, including the framing."""
        self._wire_bytes += len(data)
        super().receive_data(data)

    def next_event(self) -> Any:
        """Return the next event.

        Raises:
            RemoteProtocolError: The request exceeds a limit, or breaks the rules of HTTP.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._wire_bytes = self._body_bytes = self._parts = 0
            self._max_wire_bytes = self._usual_wire_bytes
        elif isinstance(event, h11.Data):
            self._parts += 1
            self._body_bytes += len(event.data)
        if self._wire_bytes > self._max_wire_bytes and self.their_state is h11.SEND_BODY:
            self._exceed(413, "the body of the request is too large, with its framing")
        if self._parts > _MAX_PARTS + self._body_bytes // _MIN_PART_BYTES:
            advice = f"send it in chunks of {_MIN_PART_BYTES} bytes or more, or with Content-Length"
            self._exceed(400, f"the body of the request came in too many small parts; {advice}")
        return event

    def _few_lines(self) -> list[bytearray] | None:
        lines = self._extract_lines()
        if lines and len(lines) > _MAX_HEADERS + 1:
            self._exceed(431, f"a request may have at most {_MAX_HEADERS} headers")
        return lines

    def _exceed(self, status: int, text: str) -> None:
        self.refusal = (status, text)
        raise h11.RemoteProtocolError(text, status)

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Serialize an event; the answer to an incomplete request ends the connection."""
        if isinstance(event, h11.Response) and self.their_state in _INCOMPLETE_STATES:
            headers = [pair for pair in event.headers if pair != _CLOSE_HEADER]
            event = h11.Response(
                status_code=event.status_code,
                headers=[*headers, _CLOSE_HEADER],
                reason=event.reason,
            )
        return super().send_with_data_passthrough(event)


class _Transport:
    """A transport that gathers writes, and closes by way of `_Lingering` on an incomplete request.

    uvicorn writes the headers and the body of an answer separately, and each write costs a system
    call and a packet.
    """

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._transport, self._protocol = transport, protocol
        self._gathered = b""
        self._is_lingering = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_lingering or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self._gathered:
            self._protocol.loop.call_soon(self._flush)
        self._gathered += data
        if len(self._gathered) > _MAX_GATHERED_BYTES:  # the event loop may be busy for long
            self._flush()

    def _flush(self) -> None:
        if self._gathered:
            data, self._gathered = self._gathered, b""
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        if self.is_closing() or self._protocol.conn.their_state not in _UNREAD_STATES:
            self._transport.close()
            return
        self._is_lingering = True
        self._transport.set_protocol(_Lingering(self._transport, self._protocol))
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()


class _Lingering(asyncio.Protocol):
    """Discard what a client still sends, for a short time, and close the connection.

    If the socket closed with unread data, the system would reset the connection, and the client
    could lose the answer.
    """

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._transport, self._protocol = transport, protocol
        self._left_bytes = protocol.most_bytes + _FRAMING_BYTES
        self._timer = protocol.loop.call_later(protocol.linger, transport.close)

    def data_received(self, data: bytes) -> None:
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._protocol.connection_lost(exc)
