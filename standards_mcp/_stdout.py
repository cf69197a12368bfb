"""Keeps what plugins print out of the protocol and out of ``--json`` output."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout, suppress


@contextmanager
def divert_stdout() -> Generator[None]:
    """Send stdout to stderr: what Python prints, and file descriptor 1 for all else.

    The descriptor is what C code and child processes write to; ``sys.stdout`` may be another
    stream than that, in a notebook or a test.
    """
    _flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush()
        os.dup2(saved, 1)
        os.close(saved)


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
    with suppress(AttributeError, OSError, ValueError):
        # What a plugin prints shows at once, beside the log lines of its time.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return reader, writer


def _flush() -> None:
    # A plugin may have closed, detached or replaced the stream.
    with suppress(AttributeError, OSError, ValueError):
        sys.stdout.flush()
