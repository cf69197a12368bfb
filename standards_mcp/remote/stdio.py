"""A child process that speaks MCP over its stdin and stdout.

The SDK's own transport does not tell how a process ended, does not bound a line, passes its stderr
on to ours, and leaves running what the process started itself. Here the whole process group ends
with the connection, and the log gets what is written to stderr.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from standards_mcp._utils.jsonrpc import MessageError, Received, Streams, read_message
from standards_mcp._utils.secrets import mask
from standards_mcp.config.programs import why_not_found
from standards_mcp.errors import ApiError

from .output_log import OutputLog
from .transport import Transport

MAX_LINE: Final = 32 << 20
"""The longest message that is read from a child process, in bytes."""
GRACE_SECONDS: Final = 2.0
"""How long a process may take to end once its stdin is closed, and again once it is asked to."""
_POLL_SECONDS: Final = 0.02
_WATCH_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start a process.

    Attributes:
        env: Its whole environment.
        first_line: Written to its stdin before any message; it never stands in a list of processes.
        most_processes: How many it may have at a time, itself included; 0: any number.
        secrets: What no message may hold of the last line that it wrote.
    """

    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: Path | None = None
    first_line: bytes = field(default=b"", repr=False)
    most_processes: int = 0
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


class StdioTransport(Transport):
    """One run of a command.

    Args:
        name: What the log calls it.
    """

    def __init__(self, name: str, command: Command) -> None:
        self._command = command
        self._output = OutputLog(name)
        self._process: asyncio.subprocess.Process | None = None
        self._reason = ""

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    def kill(self, reason: str) -> None:
        """End the process and all that it started, at once; `exit_reason` gives the *reason*."""
        if self._process and self.is_running:
            self._reason = reason
            _kill_tree(self._process)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Streams]:
        """Run the process while the context is open.

        Raises:
            ApiError: It cannot be started.
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
                try:
                    yield received, sent
                finally:
                    # A connection that is cancelled still ends its process in an orderly way.
                    with anyio.CancelScope(shield=True):
                        await _end(process)
                    group.cancel_scope.cancel()
        finally:
            for stream in (to_us, received, sent, to_child):
                stream.close()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({errors}, timeout=_POLL_SECONDS)
            errors.cancel()
            self.exit_reason = self._describe_exit(process)
            _release(process)

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
                limit=MAX_LINE,
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
        assert process.stdout  # noqa: S101  - it was asked for
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with to_us:
                try:
                    while line := await process.stdout.readline():
                        await self._pass_on(line, to_us)
                except ValueError:
                    self._reason = f"it wrote a line of over {MAX_LINE >> 20} MiB on its stdout"
                    self._output.note(self._reason)

    async def _pass_on(self, line: bytes, to_us: MemoryObjectSendStream[Received]) -> None:
        if line.isspace():
            return
        try:
            message = read_message(line)
        except MessageError as exc:
            self._output.note(f"on its stdout, not a message ({exc.reason}): {line[:200]!r}")
        else:
            await to_us.send(SessionMessage(message))

    async def _watch(self, process: asyncio.subprocess.Process, most: int) -> None:
        """End a process that starts too many.

        A limit of the kernel counts all processes of a user, and does not bind root.
        """
        newest = b""
        while True:
            await anyio.sleep(_WATCH_SECONDS)
            last, newest = newest, _newest_process()
            if newest and newest == last:
                continue  # none was started: counting reads a file for each that runs
            if count_processes(process.pid) > most:
                self.kill(f"it was ended: it had more than {most} processes")

    def _describe_exit(self, process: asyncio.subprocess.Process) -> str:
        """Return how the process ended, with the last that it wrote to stderr."""
        last = mask(self._output.last_line, self._command.secrets)
        words = f"; its last words: {last}" if last else ""
        return f"{self._reason or _describe_code(process.returncode)}{words}"


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
        to_us.close()  # it reads no more: nothing that is asked of it would ever be answered


async def _end(process: asyncio.subprocess.Process) -> None:
    """Let the process end by itself, then ask it to, then kill it with all that it started.

    The last step is taken in any case: what it started may outlive it.
    """
    if process.stdin:
        process.stdin.close()
    if not await _ended(process):
        _signal_tree(process, signal.SIGTERM)
        await _ended(process)
    _kill_tree(process)
    await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> bool:
    # Waiting for the process would also wait for every other that inherited its pipes.
    with anyio.move_on_after(GRACE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110  - nothing tells of it, see above
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None


def _kill_tree(process: asyncio.subprocess.Process) -> None:
    _signal_tree(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _signal_tree(process: asyncio.subprocess.Process, number: int) -> None:
    """Signal the process and all that it started; those may still be there when it is gone."""
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    elif process.returncode is None:
        tree = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(tree, capture_output=True, check=False)  # noqa: S603


def count_processes(session: int) -> int:
    """Return how many processes a session has; 0 where the system does not tell."""
    count = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of a program, which stands in brackets, may hold anything.
            fields = file.read_bytes().rpartition(b")")[2].split()
            count += int(fields[3]) == session and fields[0] != b"Z"
    return count


def _newest_process() -> bytes:
    """Return the number of the process that was started last; nothing where none is told."""
    with suppress(OSError):
        return Path("/proc/loadavg").read_bytes().split()[-1]
    return b""


def _describe_code(code: int | None) -> str:
    if code is None:
        return "it does not end"
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


def _release(process: asyncio.subprocess.Process) -> None:
    """Close the pipes, which a process that left the group may still hold open."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
