"""A worker process, as the host sees it."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.text import TextReceiveStream

from .process import BEGUN, LENGTH, OUT_OF_MEMORY, Answer, Begin, framed

T = TypeVar("T")

_PROGRAM: Final = "from standards_mcp_knowledge.workers.process import main; main()"
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_MOST_OF_A_LINE: Final = 1000


class WorkerEndedError(Exception):
    """The worker ended before it answered."""


class WorkerGoneError(WorkerEndedError):
    """The worker ended before it began with the call."""


class Worker:
    """A process that runs one function at a time.

    Args:
        begin: The message before the first function.

    Attributes:
        answered: Number of answered calls.
    """

    def __init__(self, process: Process, begin: Begin, log: logging.Logger) -> None:
        self._process = process
        self._unsent: Begin | None = begin
        self._log = log
        assert process.stdout is not None  # noqa: S101  - a pipe by default
        self._answers = BufferedByteReceiveStream(process.stdout)
        self._cause = ""
        self.answered = 0

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True until it has ended."""
        return self._process.returncode is None

    @property
    def is_usable(self) -> bool:
        """True until it has ended or is being killed."""
        return self.is_alive and not self._cause

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function of `tasks` in the process, and return its result.

        Raises:
            WorkerEndedError: It ended; `WorkerGoneError` if it had not begun with this call.
            Exception: The error of the function, with the traceback as a note.
        """
        if self._unsent is not None:
            await self._send(self._unsent)
            self._unsent = None
        await self._send((function, arguments))
        await self._receive(len(BEGUN), WorkerGoneError)
        head = await self._receive(LENGTH, WorkerEndedError)
        data = await self._receive(int.from_bytes(head), WorkerEndedError)
        self.answered += 1
        answer: Answer = pickle.loads(data)  # noqa: S301  - from a process of this program
        if answer.error is not None:
            raise answer.error
        value: T = answer.value
        return value

    async def _receive(self, size: int, error: type[WorkerEndedError]) -> bytes:
        try:
            return await self._answers.receive_exactly(size)
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise error from None

    async def _send(self, message: object) -> None:
        assert self._process.stdin is not None  # noqa: S101  - a pipe by default
        try:
            await self._process.stdin.send(framed(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            raise WorkerGoneError from None

    def end(self, cause: str = "") -> None:
        """Kill the process."""
        if self.is_alive:
            self._cause = self._cause or cause
            self._process.kill()

    async def wait(self) -> str:
        """Wait until it has ended, and return the cause."""
        code = await self._process.wait()
        if self._cause:
            return self._cause
        if code == OUT_OF_MEMORY:
            return "it needed more memory than worker_memory"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    async def close(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.end("the host ends")
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    async def listen(self) -> None:
        """Write its output to the log, until it ends."""
        assert self._process.stderr is not None  # noqa: S101  - a pipe by default
        lines = TextReceiveStream(self._process.stderr, errors="replace")
        try:
            async for text in lines:
                for line in filter(str.strip, text.splitlines()):
                    fields = {"pid": self.pid, "text": line[:_MOST_OF_A_LINE]}
                    self._log.info("worker output", extra=fields)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def start_worker(begin: Begin, log: logging.Logger) -> Worker:
    """Start a process. Its output goes to the log while `Worker.listen` runs.

    Raises:
        OSError: It cannot be started.
    """
    # -P: the client chooses the working directory, so nothing must be imported from it.
    command = [sys.executable, "-P", "-c", _PROGRAM]
    # In a new session, Ctrl-C in a terminal reaches only the host.
    process = await anyio.open_process(
        command, env={**os.environ, **_ONE_THREAD}, start_new_session=True
    )
    return Worker(process, begin, log)
