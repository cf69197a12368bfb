"""The transports to MCP servers: a child process with pipes, or an address with streamable HTTP.

The SDK's own transport for processes hides the exit code, does not limit the length of a line,
passes stderr on to ours, and leaves the processes that the child started. This one ends the whole
process group with the connection, and logs stderr.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import responses
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from standards_mcp._utils.messages import (
    MessageError,
    Received,
    Streams,
    read_lines,
    read_message,
)
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import describe_exception
from standards_mcp.config.problems import why_not_found
from standards_mcp.errors import ApiError

from .connection import Transport
from .processes import (
    GRACE_SECONDS,
    OutputLog,
    describe_code,
    end_departed,
    end_process,
    kill_tree,
    newest_process,
    processes_of,
    release,
)

MAX_LINE: Final = 32 << 20
"""The limit for the length of a message from a child process, in bytes."""
_TURN_LINES: Final = 100
_POLL_SECONDS: Final = 0.02
_WATCH_SECONDS: Final = 0.2

_HTTP_SECONDS: Final = 30.0
_STREAM_SECONDS: Final = 300.0
_SDK_MESSAGES: Final = ("Server returned an error response", "Not Found", "Session terminated")
"""The SDK's messages for an HTTP error status."""
_ADVICE: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "check the token in headers",
    HTTPStatus.FORBIDDEN: "check the token in headers, and its permissions",
    HTTPStatus.TOO_MANY_REQUESTS: "try again later",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command line and the surroundings of a process.

    Attributes:
        env: Its whole environment.
        first_line: Written to its stdin before any message, because lists of processes must not
            show it.
        most_processes: The limit for its processes at a time, itself included; 0 for no limit.
        mark: The part of *env* that only its processes have (`new_mark`). Processes that left its
            session end with it. Without a mark they stay: a server may start a daemon on purpose.
        secrets: Masked in its last words.
    """

    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: Path | None = None
    first_line: bytes = field(default=b"", repr=False)
    most_processes: int = 0
    mark: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


class StdioTransport(Transport):
    """One run of a command.

    Args:
        name: The plugin's name in the log.
    """

    def __init__(self, name: str, command: Command) -> None:
        self._name = name
        self._command = command
        self._output = OutputLog(name)
        self._process: asyncio.subprocess.Process | None = None
        self._reason = ""

    @property
    def is_running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    def kill(self, reason: str) -> None:
        """Kill the process and its process group; `exit_reason` gives the *reason*."""
        if self._process and self.is_running:
            self._reason = reason
            kill_tree(self._process)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Streams]:
        """Run the process while the context is open.

        Raises:
            ApiError: The process cannot be started.
        """
        self._process = process = await self._spawn()
        to_us, received = anyio.create_memory_object_stream[Received](0)
        sent, to_child = anyio.create_memory_object_stream[SessionMessage](0)
        errors = asyncio.create_task(self._output.read(process.stderr))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive, process, to_us)
                group.start_soon(_send, process, to_child, to_us)
                if self._command.most_processes:
                    group.start_soon(self._watch, process, self._command.most_processes)
                if self._command.mark:
                    group.start_soon(_close_at_end, process, to_us)
                try:
                    yield received, sent
                finally:
                    # A connection that is cancelled still ends its process in an orderly way.
                    with anyio.CancelScope(shield=True):
                        await end_process(process)
                        if departed := end_departed(process.pid, self._command.mark):
                            self._output.note(f"processes left behind were ended: {departed}")
                    group.cancel_scope.cancel()
        finally:
            for stream in (to_us, received, sent, to_child):
                stream.close()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({errors}, timeout=_POLL_SECONDS)
            errors.cancel()
            self.exit_reason = self._describe_exit(process)
            release(process)

    async def _spawn(self) -> asyncio.subprocess.Process:
        command = self._command
        program = shutil.which(command.program, path=command.env.get("PATH")) or command.program
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *command.args,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(command.env),
                cwd=command.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            reason = why_not_found(command.program, command.env.get("PATH"), command.cwd)
            reason = reason or (isinstance(exc, OSError) and exc.strerror) or str(exc)
            raise ApiError(f"{command.program!r} cannot be started: {reason}") from None
        if process.stdin and command.first_line:
            process.stdin.write(command.first_line)
        return process

    async def _receive(
        self,
        process: asyncio.subprocess.Process,
        to_us: MemoryObjectSendStream[Received],
    ) -> None:
        assert process.stdout  # noqa: S101  - it is a pipe
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with to_us:
                try:
                    async for lines in read_lines(process.stdout, MAX_LINE):
                        for number, line in enumerate(lines, 1):
                            if message := self._message_of(line):
                                await to_us.send(SessionMessage(message))
                            if number % _TURN_LINES == 0:  # within a flood of short lines
                                await asyncio.sleep(0)
                except ValueError:
                    self._reason = f"it wrote a line of over {MAX_LINE >> 20} MiB on its stdout"
                    self._output.note(self._reason)

    def _message_of(self, line: bytes) -> JSONRPCMessage | None:
        if not line or line.isspace():
            return None
        reason = ""
        if line.lstrip().startswith(b"{"):  # parsing other lines would cost more
            try:
                return read_message(line)
            except MessageError as exc:
                reason = f" ({exc.reason})"
        self._output.note(f"on its stdout, not a message{reason}: {line[:200]!r}")
        return None

    async def _watch(self, process: asyncio.subprocess.Process, most: int) -> None:
        """End a process that has started too many others.

        The kernel's own limit counts all processes of a user, and does not apply to root.
        """
        newest = b""
        while True:
            await anyio.sleep(_WATCH_SECONDS)
            last, newest = newest, newest_process()
            if newest and newest == last:
                continue  # no process was started; counting reads one file for each
            if len(processes_of(process.pid, self._command.mark)) > most:
                self.kill(f"it was ended: it had more than {most} processes")

    def _describe_exit(self, process: asyncio.subprocess.Process) -> str:
        """Return how the process ended, with its last line on stderr."""
        last = mask(self._output.last_line, self._command.secrets)
        words = f"; its last words: {last}" if last else ""
        return f"{self._reason or describe_code(process.returncode)}{words}"


async def _send(
    process: asyncio.subprocess.Process,
    to_child: MemoryObjectReceiveStream[SessionMessage],
    to_us: MemoryObjectSendStream[Received],
) -> None:
    assert process.stdin  # noqa: S101  - as above
    try:
        async with to_child:
            async for item in to_child:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
    except OSError:
        to_us.close()  # it no longer reads, so it would answer no request


async def _close_at_end(
    process: asyncio.subprocess.Process, to_us: MemoryObjectSendStream[Received]
) -> None:
    """Close the connection when the process ends, even if a copy of it keeps the pipes open."""
    while process.returncode is None:  # noqa: ASYNC110  - no event comes in time
        await anyio.sleep(_WATCH_SECONDS)
    await anyio.sleep(GRACE_SECONDS)  # its output is read first
    to_us.close()


@dataclass
class HttpTransport(Transport):
    """One connection to an address.

    Attributes:
        headers: Sent with every request.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    _status: int = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Any]:
        """Return the streams of the connection. See `Transport`."""
        timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
        async with (
            httpx2.AsyncClient(
                headers=dict(self.headers), timeout=timeout, event_hooks={"response": [self._note]}
            ) as client,
            streamable_http_client(self.url, http_client=client) as streams,
        ):
            yield streams

    def explain(self, error: BaseException) -> str:
        """Return the cause of an error with a remedy. See `Transport`."""
        if isinstance(error, httpx2.UnsupportedProtocol):
            return "its url must begin with http:// or https://"
        if isinstance(error, httpx2.TransportError):
            return f"it cannot be reached ({describe_exception(error)}); check url and that it runs"
        if not isinstance(error, MCPError):
            return ""
        if error.message in _SDK_MESSAGES and self._status >= HTTPStatus.BAD_REQUEST:
            is_its_fault = self._status >= HTTPStatus.INTERNAL_SERVER_ERROR
            advice = "ask its administrator" if is_its_fault else "check url and headers"
            name = responses.get(self._status, "")
            shown = f"{self._status} {name}".strip()
            return f"it answered with HTTP status {shown}; {_ADVICE.get(self._status, advice)}"
        is_page = error.message.startswith("Unexpected content type")
        return f"{error.message}; check url, which leads to no MCP server" if is_page else ""

    async def _note(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self._status = response.status_code
