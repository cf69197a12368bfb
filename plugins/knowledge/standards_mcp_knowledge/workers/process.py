"""One worker process: `Worker` is the handle in the host, `main` the loop in the process.

A request is the pickle of a function and its arguments. An answer is `_BEGUN` before the function
runs, so the host knows whether a worker that ended had started the call; then the pickle of the
result and the error, after its length. Requests come on stdin, answers go to stdout.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, TypeVar

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.text import TextReceiveStream

if TYPE_CHECKING:
    pass

T = TypeVar("T")
Request: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

LENGTH: Final = 8
_BEGUN: Final = b"\x01"
_OUT_OF_MEMORY: Final = 77
"""The exit status of a worker that exceeds its memory limit."""
_PROGRAM: Final = "from standards_mcp_knowledge.workers.process import main; main()"
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_LONGEST_LINE: Final = 1000
_PIPE_ERRORS: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class WorkerEndedError(Exception):
    """A worker ended before it answered.

    Attributes:
        has_begun: True if the worker had started the call.
    """

    def __init__(self, *, has_begun: bool) -> None:
        super().__init__()
        self.has_begun = has_begun


class Worker:
    """The host's handle of a process that runs one function at a time."""

    def __init__(self, process: Process, log: logging.Logger) -> None:
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018, S101  - pipes
        self._process = process
        self._requests = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)
        self._output = TextReceiveStream(process.stderr, errors="replace")
        self._log = log
        self._cause = ""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_usable(self) -> bool:
        """True until the process has ended or is being killed."""
        return self._process.returncode is None and not self._cause

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function of `tasks` in the process, and return its result.

        Raises:
            WorkerEndedError: The process ended.
            Exception: The error of the function, with the traceback as a note.
        """
        has_begun = False
        try:
            # Pickle is enough: a worker runs as the same user as the server, and contains crashes
            # and endless work, not hostile code.
            await self._requests.send(pickle.dumps((function, arguments)))
            await self._answers.receive_exactly(len(_BEGUN))
            has_begun = True
            size = int.from_bytes(await self._answers.receive_exactly(LENGTH))
            data = await self._answers.receive_exactly(size)
        except (*_PIPE_ERRORS, anyio.IncompleteRead, OSError):
            raise WorkerEndedError(has_begun=has_begun) from None
        value: T
        value, error = pickle.loads(data)  # noqa: S301  - from a process of this program
        if error is not None:
            raise error
        return value

    def end(self, cause: str) -> None:
        """Kill the process, unless it has ended."""
        if self._process.returncode is None:
            self._cause = self._cause or cause
            self._process.kill()

    async def wait(self) -> str:
        """Wait until the process has ended, and return the cause."""
        code = await self._process.wait()
        if self._cause:
            return self._cause
        if code == _OUT_OF_MEMORY:
            return "it needed more memory than worker_memory"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    async def close(self) -> None:
        """Kill the process, and wait until it has ended."""
        self.end("the host ends")
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    async def log_output(self) -> None:
        """Log the output of the process until it ends."""
        try:
            async for text in self._output:
                for line in filter(str.strip, text.splitlines()):
                    fields = {"pid": self.pid, "text": line[:_LONGEST_LINE]}
                    self._log.info("worker output", extra=fields)
        except _PIPE_ERRORS:
            return


async def start_worker(log: logging.Logger) -> Worker:
    """Start a process. Its output goes to the log while `Worker.log_output` runs.

    Raises:
        OSError: The process cannot be started.
    """
    # -P: the client chooses the working directory, so nothing must be imported from it.
    command = [sys.executable, "-P", "-c", _PROGRAM]
    # In a new session, Ctrl-C in a terminal reaches only the host.
    process = await anyio.open_process(
        command, env={**os.environ, **_ONE_THREAD}, start_new_session=True
    )
    return Worker(process, log)


def main() -> None:
    """Answer the requests of the host, in order, until the host ends."""
    from .open_resources import OpenResources  # noqa: PLC0415  - the host needs no NumPy

    answers = os.fdopen(os.dup(1), "wb")
    # Prints of libraries go to stderr, which the host writes to its log.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    requests: SimpleQueue[Request] = SimpleQueue()
    # A separate thread notices the end of the host while a function runs.
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    resources = OpenResources()
    while True:
        function, arguments = requests.get()
        answers.write(_BEGUN)
        answers.flush()
        try:
            data = answer_to(function, resources, *arguments)
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)
        answers.write(len(data).to_bytes(LENGTH) + data)
        answers.flush()


def answer_to(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Run a function, and return the pickle of its result and its error.

    An error that cannot be pickled is replaced by its text.

    Raises:
        MemoryError: The function exceeds the memory limit.
    """
    try:
        return pickle.dumps((function(*arguments), None))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  - the host raises it
        # Pickle drops tracebacks.
        note = traceback.format_exc()
        answer: Exception = error
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301  - some errors fail only here
        except Exception:  # noqa: BLE001  - whatever the class of the error does
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        answer.add_note(note)
        return pickle.dumps((None, answer))


def _read(stream: BinaryIO, requests: SimpleQueue[Request]) -> None:
    try:
        while True:
            requests.put(pickle.load(stream))  # noqa: S301  - from the host
    finally:
        os._exit(0)
