"""The stdio transport: carry messages between the SDK's server and one client.

Unlike the SDK's transport, it answers lines that are not messages, and it tracks unanswered
requests, so that they are still answered after the client has closed its side (docs/decisions.md).
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from typing_extensions import TypeIs

from standards_mcp._utils.exceptions import internal_error, new_incident
from standards_mcp._utils.full_disk import reason_of
from standards_mcp._utils.messages import (
    LineReader,
    LineWriter,
    MessageError,
    Received,
    read_message,
)
from standards_mcp.errors import StandardsMcpError
from standards_mcp.start.front import Streams

log = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 10.0
"""Time for requests in flight after the client has closed its side."""


async def serve_stdio(
    server: Server[None],
    streams: Streams,
    *,
    on_stale: Callable[[str], None] = lambda _: None,
    drain_seconds: float = DRAIN_SECONDS,
    on_leaving: Callable[[float], None] = lambda _: None,
    idle: asyncio.Event | None = None,
) -> None:
    """Serve one client until it leaves.

    Requests that were read before the client closed its side are still answered.

    Args:
        streams: The client's end. The server answers requests that were answered before, too, but
            these answers are dropped.
        on_stale: Called with the method of such a request if the server's answer differs.
        drain_seconds: Time limit for these answers; the number of missing answers is logged.
        on_leaving: Called, in any thread, with the time that is left: with *drain_seconds* when the
            client has closed its side, and with 0 when all requests are answered or that time is
            over.
        idle: Set while the client waits for no answer.

    Raises:
        StandardsMcpError: Answers cannot be written, although the client is still connected.
    """
    failures: list[OSError] = []
    with anyio.CancelScope() as scope:

        def end(failure: OSError) -> None:
            failures.append(failure)
            scope.cancel()

        messages = LineReader(streams, on_end=partial(on_leaving, drain_seconds))
        to_server, received = anyio.create_memory_object_stream[Received](0)
        answers, to_client = anyio.create_memory_object_stream[SessionMessage](0)
        replay = _Replay(streams.answered, on_stale)
        wire = _Wire(LineWriter(streams.writer, on_broken=end), to_server, replay, idle)
        async with anyio.create_task_group() as group:

            async def receive() -> None:
                # If the server ends first, it closes the stream.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async with to_server:
                        async for line in messages:
                            await wire.receive(line, streams.limit)
                        await wire.wait_answered(drain_seconds)
                        on_leaving(0)

            group.start_soon(receive)
            group.start_soon(wire.send_all, to_client)
            await server.run(received, answers, server.create_initialization_options())
    for failure in failures:
        # Windows reports a pipe without a reader as an invalid argument.
        if not isinstance(failure, ConnectionError) and failure.errno != errno.EINVAL:
            raise StandardsMcpError(f"answers cannot be written to stdout: {reason_of(failure)}")


class _Wire:
    """Messages from and to one client, and the requests whose answers are not written yet."""

    def __init__(
        self,
        writer: LineWriter,
        to_server: MemoryObjectSendStream[Received],
        replay: _Replay,
        idle: asyncio.Event | None,
    ) -> None:
        self._writer, self._to_server, self._replay = writer, to_server, replay
        self._unanswered: set[RequestId | None] = set()
        self._no_unanswered = idle or asyncio.Event()
        self._no_unanswered.set()

    async def receive(self, line: bytes, limit: int) -> None:
        """Pass the message of a line to the server, or answer the line with an error."""
        if not line or line.isspace():
            return
        try:
            message = _message_of(line, limit)
        except MessageError as exc:
            log.warning("a line was refused", extra={"reason": exc.reason})
            # A wrong response gets no answer: two sides that answer each other's errors never stop.
            if exc.answer:
                await self._writer.write(_line_of(exc.answer))
            return
        metadata = None
        # A subscription is answered only when the server ends, so it must not be waited for.
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            request_id = message.id
            await self._replay.begin(request_id)
            self._unanswered.add(request_id)
            self._no_unanswered.clear()

            async def settle_cancelled() -> None:
                self._settle(request_id)

            metadata = ServerMessageMetadata(on_request_unanswered=settle_cancelled)
        await self._to_server.send(SessionMessage(message, metadata))

    def _settle(self, request_id: RequestId | None) -> None:
        """Note that a request was answered or cancelled."""
        if request_id is not None:
            self._replay.end(request_id)
        self._unanswered.discard(request_id)
        if not self._unanswered:
            self._no_unanswered.set()

    async def wait_answered(self, seconds: float) -> None:
        """Wait until all requests are answered, for *seconds* at most."""
        with anyio.move_on_after(seconds) as scope:
            await self._no_unanswered.wait()
        if scope.cancelled_caught:
            log.warning(
                "the client has left; requests were not answered in time",
                extra={"requests": len(self._unanswered), "seconds": seconds},
            )

    async def send_all(self, to_client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write the messages of the server."""
        async with anyio.create_task_group() as group, to_client:
            async for item in to_client:
                message = item.message
                if self._replay.drops(message):
                    self._settle(message.id)
                    continue
                try:
                    line = _line_of(message)
                except ValueError as exc:  # includes pydantic's errors
                    error = _replacement_error(message, exc)
                    if error is None:
                        continue
                    if isinstance(message, JSONRPCRequest):  # the server waits for its answer
                        group.start_soon(self._answer, error)
                        continue
                    message, line = error, _line_of(error)
                await self._writer.write(line)
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    self._settle(message.id)

    async def _answer(self, error: JSONRPCError) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._to_server.send(SessionMessage(error))


class _Replay:
    """The requests that the front has answered, and that the server answers once more.

    Args:
        answered: The methods and the results that were sent, by the ids of the requests.
        on_stale: Called with the method if the server's answer is another one.
    """

    def __init__(
        self, answered: Mapping[RequestId, tuple[str, bytes]], on_stale: Callable[[str], None]
    ) -> None:
        self._answered = dict(answered)
        self._on_stale = on_stale
        self._running: dict[RequestId, asyncio.Event] = {}

    async def begin(self, request_id: RequestId) -> None:
        """Note a request. If a client uses an id again, wait for the end of the first request."""
        if running := self._running.get(request_id):
            await running.wait()
        elif request_id in self._answered:
            self._running[request_id] = asyncio.Event()

    def drops(self, message: JSONRPCMessage) -> TypeIs[JSONRPCResponse | JSONRPCError]:
        """True if the client has an answer already; a different one is reported."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        if message.id is None or message.id not in self._answered:
            return False
        method, result = self._answered[message.id]
        is_same = isinstance(message, JSONRPCResponse) and (
            pydantic_core.to_json(message.result) == result
        )
        if not is_same:
            self._on_stale(method)
        return True

    def end(self, request_id: RequestId) -> None:
        """Note that a request was answered or cancelled."""
        if request_id in self._answered:
            del self._answered[request_id]
            self._running.pop(request_id).set()


def _message_of(line: bytes, limit: int) -> JSONRPCMessage:
    if len(line) > limit:
        raise MessageError(INVALID_REQUEST, f"a line may have at most {limit} bytes")
    return read_message(line)


def _line_of(message: JSONRPCMessage) -> str:
    # The id of a line that cannot be read is unknown; the protocol has no null as an id.
    unknown = {"id"} if getattr(message, "id", "") is None else None
    line = message.model_dump_json(by_alias=True, exclude_unset=True, exclude=unknown) + "\n"
    line.encode()
    return line


def _replacement_error(message: JSONRPCMessage, why: ValueError) -> JSONRPCError | None:
    """Log a message that cannot be written; return the error that replaces a request or answer.

    Plugins decide the content of messages, and a bad one must not end the session.
    """
    request_id = getattr(message, "id", None)
    incident = new_incident()
    fields = {"method": getattr(message, "method", None), "reason": str(why), "incident": incident}
    log.error("a message cannot be written", extra=fields)
    if request_id is None:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=internal_error("The answer", incident))
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
