"""The standard streams of the process: divert, protect, and replace them if they are closed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, Final, TextIO

_STREAM_OPTIONS: Final[dict[str, Any]] = {
    "encoding": "utf-8",
    "errors": "backslashreplace",
    "line_buffering": True,
}


@contextmanager
def divert_stdout() -> Generator[None]:
    """Send stdout to stderr: ``sys.stdout``, and file descriptor 1.

    C code and child processes write to the descriptor. In a notebook or a test, ``sys.stdout`` may
    be another stream.
    """
    _flush()
    fill_closed_streams()  # an earlier plugin may have closed them
    if getattr(sys.stderr, "closed", False):
        sys.stderr = own_stderr()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush()
        os.dup2(saved, 1)
        os.close(saved)


# For the whole process and not per call, so that prints before and after a session also go to
# stderr.
def claim_standard_streams() -> tuple[int, int]:
    """Take file descriptors 0 and 1 for the protocol and return private copies of them.

    From then on the process reads end-of-file from 0 and writes to stderr through 1, and so do
    the child processes that it starts.
    """
    _flush()
    reader, writer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    # Line buffering keeps prints in order among the log lines.
    _replace_stream("stdout", _UnclosableStream(os.fdopen(os.dup(2), "wb"), **_STREAM_OPTIONS))
    stderr = _UnclosableStream(os.fdopen(2, "wb", closefd=False), **_STREAM_OPTIONS)
    _replace_stream("stderr", stderr)
    return reader, writer


class _UnclosableStream(io.TextIOWrapper):
    """A stream that plugins cannot close."""

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self.flush()


def _replace_stream(name: str, stream: TextIO) -> None:
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def fill_closed_streams() -> None:
    """Open the null device wherever file descriptor 0, 1 or 2 is closed.

    Otherwise the next open file would get that number, and the output of C code, child processes
    and diverted prints would go there. From now on, output to a closed stderr is dropped;
    `sys.stdin` and `sys.stdout` stay None, so that callers notice.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number, which is this one
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False)


def own_stderr() -> TextIO:
    """Return a stream to stderr that stays open even if a plugin closes stderr."""
    return os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)


def flush_or_drop() -> OSError | None:
    """Flush stdout and stderr; if this fails, drop the output and return the error.

    Otherwise Python would flush them again at exit, and report the failure itself.
    """
    failure = None
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            with suppress(AttributeError, ValueError):  # the stream is None or closed
                stream.flush()
        except OSError as exc:
            failure = failure or exc
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)
    return failure


def _flush() -> None:
    # A plugin may have closed, detached or replaced `sys.stdout`.
    with suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
