"""The main loop of a worker process, and its protocol.

A request is a function with its arguments, and an answer its result or error, both pickled, with
their length in 8 bytes before them. Requests come on stdin, answers go to stdout. A worker sends
`BEGUN` before it runs a request, so the host knows if a worker that ended had begun with a call.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from standards_mcp_knowledge.encoders import Encoders

if TYPE_CHECKING:
    from .opened import Opened

LENGTH: Final = 8
BEGUN: Final = b"\x01"
OUT_OF_MEMORY: Final = 77
"""The exit status of a worker that exceeds its limit of memory."""

Request: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Begin:
    """The first request.

    Attributes:
        memory: Limit of the worker's address space, in bytes.
    """

    memory: int
    encoders: Encoders


@dataclass(frozen=True, slots=True)
class Answer:
    """The result or the error of a function. An error has its traceback as a note."""

    value: Any = None
    error: Exception | None = None


def framed(message: object) -> bytes:
    """Return a message as both sides send it.

    An error that cannot be pickled is replaced by its text.
    """
    try:
        # Pickle is enough: a worker runs as the same user as the server, and contains crashes and
        # endless work, not hostile code.
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)  # noqa: S301  - errors with their own arguments fail only here
    except Exception:
        if not isinstance(message, Answer) or message.error is None:
            raise
        return framed(Answer(error=_plain(message.error)))
    return len(data).to_bytes(LENGTH) + data


def main() -> None:
    """Answer the requests of one host, in their order, until it ends."""
    from .opened import Opened  # noqa: PLC0415  - the host imports this module without FAISS

    answers = os.fdopen(os.dup(1), "wb")
    # Prints of libraries go to stderr, which the host writes to its log.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    requests: SimpleQueue[Any] = SimpleQueue()
    # A separate thread notices the end of the host while a function runs.
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    begin: Begin = requests.get()
    _limit_memory(begin.memory)
    opened = Opened(begin.encoders)
    while True:
        request: Request = requests.get()
        _write(answers, BEGUN)
        try:
            _write(answers, framed(answer_to(request, opened)))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)


def answer_to(request: Request, opened: Opened) -> Answer:
    """Run the function of a request, and return its result or its error.

    Raises:
        MemoryError: It exceeds the limit of memory.
    """
    function, arguments = request
    try:
        return Answer(function(opened, *arguments))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  - the host raises it
        # Pickle drops tracebacks.
        error.add_note(traceback.format_exc())
        return Answer(error=error)


def _plain(error: Exception) -> Exception:
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    for note in error.__notes__:
        plain.add_note(note)
    return plain


def _read(stream: BinaryIO, requests: SimpleQueue[Any]) -> None:
    while len(head := stream.read(LENGTH)) == LENGTH:
        requests.put(pickle.loads(stream.read(int.from_bytes(head))))  # noqa: S301  - from the host
    os._exit(0)


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()


def _limit_memory(size: int) -> None:
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  - it is missing on Windows

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
