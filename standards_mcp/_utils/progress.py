"""Print the progress of a long command if stderr is not a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

PAUSE: Final = 10.0
"""Seconds between two lines."""
_LAST_LINE_SECONDS: Final = 1.0


@contextmanager
def progress_lines(line: Callable[[], str], write: Callable[[str], None]) -> Generator[None]:
    """Write a line every ten seconds, also while no progress is reported.

    A text encoder may be silent for minutes, while it downloads or loads its model.

    Args:
        line: Returns how far the command is. It is called in another thread.
        write: Writes the line, with the seconds that have passed.
    """
    ended, began = threading.Event(), time.monotonic()

    def write_lines() -> None:
        while not ended.wait(PAUSE):
            try:
                write(f"{line()}, {time.monotonic() - began:,.0f} s")
            except (OSError, ValueError):  # stderr is closed
                return

    thread = threading.Thread(target=write_lines, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LAST_LINE_SECONDS)
