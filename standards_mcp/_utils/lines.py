"""Read lines from a file descriptor in a thread of their own, with the standard library only."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias

MAX_LINE: Final = 32 << 20
"""The longest line in bytes; a longer line is answered with an error."""
CHUNK: Final = 1 << 16
"""The number of bytes that are read at a time."""

Consumer: TypeAlias = Callable[[list[bytes]], bool]
"""Takes the lines of one chunk, without their ends, and returns False if it wants no more.

An empty list is the end of the input.
"""


class Lines(Protocol):
    """A source of lines, which a thread of its own reads."""

    limit: int
    """A line of more bytes is cut somewhere after the limit; its length is then greater."""

    def start(self, consume: Consumer) -> None:
        """Pass all lines to *consume*, in a thread of the source."""


class DescriptorLines:
    """The lines that arrive on a file descriptor.

    The blocking reads happen in a daemon thread: unlike a pooled thread, it does not keep the
    process from ending while the client holds the pipe open. A failed read counts as the end.
    """

    def __init__(self, descriptor: int, limit: int = MAX_LINE) -> None:
        self._descriptor = descriptor
        self.limit = limit

    def start(self, consume: Consumer) -> None:
        """Pass all lines to *consume*, in a new thread."""
        threading.Thread(target=self._read, args=(consume,), daemon=True).start()

    def _read(self, consume: Consumer) -> None:
        for lines in _split_lines(self._chunks(), self.limit):
            if not consume(lines):
                return
        consume([])

    def _chunks(self) -> Iterator[bytes]:
        try:
            while data := os.read(self._descriptor, CHUNK):
                yield data
        except OSError:
            return


def _split_lines(chunks: Iterable[bytes], limit: int) -> Iterator[list[bytes]]:
    """Yield the lines that each chunk completes, and at the end an unfinished line."""
    unfinished = bytearray()
    for data in chunks:
        head, *rest = data.split(b"\n")
        if len(unfinished) <= limit:
            unfinished += head
        if rest:
            *whole, last = rest
            yield [bytes(unfinished), *whole]
            unfinished = bytearray(last)
    if unfinished:
        yield [bytes(unfinished)]
