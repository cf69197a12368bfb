"""The process of a worker: it answers requests until nobody asks any more.

Requests come on stdin, and answers go to stdout, see `messages`. Nothing else reaches that stdout.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import Any, BinaryIO

from .messages import BEGUN, LENGTH, OUT_OF_MEMORY, Answer, Begin, Request, framed
from .opened import Opened


def main() -> None:
    """Serve one host, which reads what it asked for in its order."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever prints, prints to stderr, which the host writes to its log.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    requests: SimpleQueue[Any] = SimpleQueue()
    # A thread of its own notices the end of the host while a function runs.
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
    """Return what the function of a request returns or raises.

    Raises:
        MemoryError: It needs more memory than there is.
    """
    function, arguments = request
    try:
        return Answer(function(opened, *arguments))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  - the host raises it
        # Tracebacks are not pickled.
        error.add_note(traceback.format_exc())
        return Answer(error=error)


def _read(stream: BinaryIO, requests: SimpleQueue[Any]) -> None:
    while len(head := stream.read(LENGTH)) == LENGTH:
        requests.put(pickle.loads(stream.read(int.from_bytes(head))))  # noqa: S301  the host's
    os._exit(0)


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()


def _limit_memory(size: int) -> None:
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  - there is none on Windows

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        least = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (least, hard))
