"""JSON-RPC messages as lines over file descriptors, for a client that may vanish at any time."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import socket
import stat
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, cast

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from .lines import CHUNK, MAX_LINE, Lines

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TOO_DEEP: Final = "it is nested too deeply"

Received: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]
]
"""The stream from which the SDK reads messages, and the stream to which it writes them."""


class MessageError(Exception):
    """A line is not a message that can be served.

    Attributes:
        reason: The fault, without any content of the line.
        answer: The error to send; None if the line is a response, because these are not answered.
    """

    def __init__(self, code: int, reason: str, message: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.answer = None
        if not _is_response(message):
            kind = "Parse error" if code == PARSE_ERROR else "Invalid request"
            error = ErrorData(code=code, message=f"{kind}: {reason}.")
            self.answer = JSONRPCError(jsonrpc="2.0", id=_id_of(message), error=error)


def read_message(line: bytes) -> JSONRPCMessage:
    """Return the message of a line.

    Half a surrogate pair, such as an emoji that was cut in two, and bytes that are not UTF-8 become
    U+FFFD.

    Raises:
        MessageError: The line is not JSON, or not a message.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _read_leniently(line)
    if isinstance(message, JSONRPCNotification) and b'"id"' in line:
        # The models read a request with an id of a wrong type as a notification.
        return _read_leniently(line)
    return message


def _read_leniently(line: bytes) -> JSONRPCMessage:
    """Read a line that the strict parser refused, or raise an error that names its fault."""
    value = _parse_json(line)
    if fault := _fault(value):
        raise MessageError(INVALID_REQUEST, fault, value)
    try:
        text = _LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except RecursionError:
        raise MessageError(INVALID_REQUEST, _TOO_DEEP, value) from None
    except ValidationError as exc:
        deep = exc.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid"
        reason = _TOO_DEEP if deep else "it is neither a request nor a response"
        raise MessageError(INVALID_REQUEST, reason, value) from None


def _parse_json(line: bytes) -> object:
    try:
        return json.loads(line.decode(errors="replace"))
    except json.JSONDecodeError as exc:
        reason = f"the line is not JSON ({exc.msg} at column {exc.colno})"
    except RecursionError:
        reason = _TOO_DEEP
    except ValueError:
        reason = "a number has too many digits"
    raise MessageError(PARSE_ERROR, reason) from None


def _fault(value: object) -> str:
    """Return the reason why a JSON value is not a message, or an empty string."""
    if isinstance(value, list):
        return "batches are not supported; send each message on a line of its own"
    if not isinstance(value, Mapping):
        return "a message must be a JSON object"
    message = cast("Mapping[str, Any]", value)
    checks = {
        'jsonrpc must be "2.0"': message.get("jsonrpc") == "2.0",
        "id must be a string or an integer": _id_of(message) is not None or "id" not in message,
        "method must be a string": isinstance(message.get("method"), str),
        "params must be an object": isinstance(message.get("params"), dict | None),
    }
    if _is_response(message):
        return ""
    return next((fault for fault, holds in checks.items() if not holds), "")


def _is_response(message: object) -> bool:
    if not isinstance(message, Mapping) or "method" in message:
        return False
    return "result" in message or "error" in message


def _id_of(message: object) -> str | int | None:
    number = cast("Mapping[str, Any]", message).get("id") if isinstance(message, Mapping) else None
    if isinstance(number, str):
        return _LONE_SURROGATE.sub("\ufffd", number)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


class LineReader:
    """Yield the lines of a source in the event loop.

    Args:
        lines: Reads in a thread, which waits while a chunk of lines is not taken.
        on_end: Called in that thread at the end of the input.
    """

    def __init__(self, lines: Lines, on_end: Callable[[], None] = lambda: None) -> None:
        self._lines = lines
        self._on_end = on_end
        self._is_closed = False
        self._room = threading.Semaphore(1)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        chunks: asyncio.Queue[list[bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(lines: list[bytes]) -> bool:
            if lines:
                # A thread that waits for a semaphore costs less than one that waits for a task.
                self._room.acquire()
            else:
                self._on_end()
            if not self._is_closed:
                with suppress(RuntimeError):  # the event loop is closed
                    loop.call_soon_threadsafe(chunks.put_nowait, lines)
            return not self._is_closed

        # A source may have lines from before, and may wait for a client that does not read.
        limiter = anyio.CapacityLimiter(1)  # plugins may occupy the pooled threads
        try:
            await anyio.to_thread.run_sync(
                self._lines.start, put, abandon_on_cancel=True, limiter=limiter
            )
            while lines := await chunks.get():
                self._room.release()
                for line in lines:
                    yield line
        finally:
            self._is_closed = True
            self._room.release()


async def read_lines(
    stream: asyncio.StreamReader, limit: int = MAX_LINE
) -> AsyncGenerator[list[bytes]]:
    """Yield the lines that each chunk of a stream completes, without their ends.

    Raises:
        ValueError: A line has more than *limit* bytes.
    """
    unfinished = bytearray()
    while data := await stream.read(CHUNK):
        head, *rest = data.split(b"\n")
        unfinished += head
        if len(unfinished) > limit:
            raise ValueError("a line is too long")
        if rest:
            *whole, last = rest
            yield [bytes(unfinished), *whole]
            unfinished = bytearray(last)
    if unfinished:
        yield [bytes(unfinished)]


class LineWriter:
    """Write text to a file descriptor, without blocking the event loop.

    If a pipe or a socket has room, the text is written at once. Other writes happen in a thread of
    their own, so that answers get out while tools occupy all pooled threads. A cancelled write is
    abandoned in its thread: the client may never read again.

    Args:
        on_broken: Called once, when a write fails; later texts are dropped.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[OSError], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._is_broken = False
        self._limiter = anyio.CapacityLimiter(1)
        self._write_nonblocking = _nonblocking_writer(descriptor)

    async def write(self, text: str) -> None:
        """Write all of *text*."""
        if self._is_broken:
            return
        data = text.encode()
        try:
            # If a thread is still writing an earlier text, this text must wait.
            if not self._limiter.borrowed_tokens:
                data = data[self._write_nonblocking(data) :]
            if not data:
                return
            await anyio.to_thread.run_sync(
                self._write_all, data, abandon_on_cancel=True, limiter=self._limiter
            )
        except OSError as exc:
            if not self._is_broken:
                self._is_broken = True
                self._on_broken(exc)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def _nonblocking_writer(descriptor: int) -> Callable[[bytes], int]:
    """Return a function that writes what it can without blocking, and returns the byte count.

    It exists for speed: a handover to a thread takes longer than most calls of tools.
    """
    if sys.platform == "win32":
        return lambda _: 0
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(mode):
        return partial(_send_nonblocking, descriptor)
    if not stat.S_ISFIFO(mode):
        return lambda _: 0
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)

    def write(data: bytes) -> int:
        try:
            has_room = bool(poll.poll(0))
        except OSError:
            return 0  # poll(2) fails in a process whose limit of open files is 0
        # poll(2) reports room in a pipe only if PIPE_BUF bytes fit.
        return os.write(descriptor, data) if has_room and len(data) <= select.PIPE_BUF else 0

    return write


def _send_nonblocking(descriptor: int, data: bytes) -> int:
    connection = socket.socket(fileno=descriptor)
    try:
        return connection.send(data, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0
    finally:
        connection.detach()  # the descriptor stays open
