"""The transports to MCP servers: a child process with pipes, or an address with streamable HTTP.

The SDK's own transport for processes hides the exit code, does not limit the length of a line,
passes the child's stderr to our stderr, and leaves processes that the child started. The transport
here ends the whole process group with the connection, and logs stderr.
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
from mcp_types import JSONRPCMessage, JSONRPCNotification

from standards_mcp._utils.messages import (
    MessageError,
    Received,
    Streams,
    read_lines,
    read_message,
)
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import describe_exception
from standards_mcp.config.problems import why_not_startable
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
from .sign_in import Account

MAX_LINE: Final = 32 << 20
"""The greatest length of a message from a child process, in bytes."""
# 10,000 reports in a row took 10 seconds; each costs the SDK two tasks.
_PROGRESS: Final = "notifications/progress"
_FEW_LINES: Final = 20
_LINES_PER_TURN: Final = 100
_POLL_SECONDS: Final = 0.02
_CHECK_SECONDS: Final = 0.2

_HTTP_TIMEOUT: Final = 30.0
_READ_TIMEOUT: Final = 300.0
_SDK_MESSAGES: Final = ("Server returned an error response", "Not Found", "Session terminated")
"""The SDK's messages for an HTTP error status."""
_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "check the token in headers",
    HTTPStatus.FORBIDDEN: "check the token in headers, and its permissions",
    HTTPStatus.TOO_MANY_REQUESTS: "try again later",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command line and the environment of a process.

    Attributes:
        env: All of its environment variables.
        first_line: Written to its stdin before any message. As an argument, it would be visible in
            lists of processes.
        most_processes: The most processes at a time, itself included; 0 for no limit.
        mark: The part of *env* that only its processes have (`new_mark`). With a mark, processes
            that left the session are ended, too. A server may start a daemon on purpose.
        secrets: Texts to mask in its last line of output.
        key: The key of the configuration that names the program.
    """

    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: Path | None = None
    first_line: bytes = field(default=b"", repr=False)
    most_processes: int = 0
    mark: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    key: str = "command"


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
        self._failure = ""

    @property
    def is_running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    def kill(self, reason: str) -> None:
        """Kill the process and its process group; *reason* becomes the `exit_reason`."""
        if self._process and self.is_running:
            self._failure = reason
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
        stderr_task = asyncio.create_task(self._output.read(process.stderr))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive, process, to_us)
                group.start_soon(_send, process, to_child, to_us)
                if self._command.most_processes:
                    group.start_soon(self._limit_processes, process, self._command.most_processes)
                if self._command.mark:
                    group.start_soon(_close_at_end, process, to_us)
                try:
                    yield received, sent
                finally:
                    # The process is ended in an orderly way, even if the connection is cancelled.
                    with anyio.CancelScope(shield=True):
                        await end_process(process)
                        if departed := end_departed(process.pid, self._command.mark):
                            self._output.note(f"processes left behind were ended: {departed}")
                    group.cancel_scope.cancel()
        finally:
            for stream in (to_us, received, sent, to_child):
                stream.close()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({stderr_task}, timeout=_POLL_SECONDS)
            stderr_task.cancel()
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
            reason = why_not_startable(
                command.program, command.env.get("PATH"), command.cwd, command.key
            )
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
                        await self._pass_on(lines, to_us)
                except ValueError:
                    self._failure = f"it wrote a line of over {MAX_LINE >> 20} MiB on its stdout"
                    self._output.note(self._failure)

    async def _pass_on(self, lines: list[bytes], to_us: MemoryObjectSendStream[Received]) -> None:
        """Pass on the messages that arrived together, and of much progress only the newest."""
        waiting: JSONRPCMessage | None = None
        for number, line in enumerate(lines, 1):
            if message := self._message_of(line):
                is_newer = number > _FEW_LINES and _token(message) == _token(waiting) != ""
                if waiting and not is_newer:
                    await to_us.send(SessionMessage(waiting))
                waiting = message
            if number % _LINES_PER_TURN == 0:  # let other tasks run, too
                await asyncio.sleep(0)
        if waiting:
            await to_us.send(SessionMessage(waiting))

    def _message_of(self, line: bytes) -> JSONRPCMessage | None:
        if not line or line.isspace():
            return None
        reason = ""
        if line.lstrip().startswith(b"{"):  # saves the time to parse other lines
            try:
                return read_message(line)
            except MessageError as exc:
                reason = f" ({exc.reason})"
        self._output.note(f"on its stdout, not a message{reason}: {line[:200]!r}")
        return None

    async def _limit_processes(self, process: asyncio.subprocess.Process, limit: int) -> None:
        """Kill the process group if it has more than *limit* processes.

        The kernel's own limit counts all processes of a user, and does not apply to root.
        """
        newest = b""
        while True:
            await anyio.sleep(_CHECK_SECONDS)
            previous, newest = newest, newest_process()
            if newest and newest == previous:
                continue  # no process was started; counting would read a file for each process
            if len(processes_of(process.pid, self._command.mark)) > limit:
                self.kill(f"it was ended: it had more than {limit} processes")

    def _describe_exit(self, process: asyncio.subprocess.Process) -> str:
        """Return how the process ended, with its last line on stderr."""
        last_line = mask(self._output.last_line, self._command.secrets)
        words = f"; its last words: {last_line}" if last_line else ""
        return f"{self._failure or describe_code(process.returncode)}{words}"


def _token(message: JSONRPCMessage | None) -> str:
    """Return the token of the call whose progress a message reports, or an empty string."""
    if not isinstance(message, JSONRPCNotification) or message.method != _PROGRESS:
        return ""
    return repr((message.params or {}).get("progressToken"))


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
        to_us.close()  # the process no longer reads, so it would answer no request


async def _close_at_end(
    process: asyncio.subprocess.Process, to_us: MemoryObjectSendStream[Received]
) -> None:
    """Close the connection when the process ends, even if a child of it keeps the pipes open."""
    while process.returncode is None:  # noqa: ASYNC110  - `wait` would wait for the pipes, too
        await anyio.sleep(_CHECK_SECONDS)
    await anyio.sleep(GRACE_SECONDS)  # to read the last output first
    to_us.close()


@dataclass
class HttpTransport(Transport):
    """One connection to a URL.

    Attributes:
        headers: The headers of every request.
        account: Adds an access token to every request.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    account: Account | None = field(default=None, repr=False)
    _status: int = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Any]:
        """Return the streams of the connection. See `Transport`."""
        if self.account:
            await self.account.prepare()
        timeout = httpx2.Timeout(_HTTP_TIMEOUT, read=_READ_TIMEOUT)
        async with (
            httpx2.AsyncClient(
                headers=dict(self.headers),
                auth=self.account,
                timeout=timeout,
                event_hooks={"response": [self._note_status]},
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
            is_server_error = self._status >= HTTPStatus.INTERNAL_SERVER_ERROR
            advice = "ask its administrator" if is_server_error else "check url and headers"
            name = responses.get(self._status, "")
            shown = f"{self._status} {name}".strip()
            remedy = _REMEDIES.get(self._status, advice)
            if self.account and self._status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                remedy = self.account.remedy
            return f"it answered with HTTP status {shown}; {remedy}"
        is_page = error.message.startswith("Unexpected content type")
        return f"{error.message}; check url, which leads to no MCP server" if is_page else ""

    async def _note_status(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self._status = response.status_code
