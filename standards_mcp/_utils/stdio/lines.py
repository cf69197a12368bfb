"""Newline-delimited text over two file descriptors, for a client that may vanish at any time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Final

import anyio
import anyio.to_thread

MAX_LINE: Final = 32 << 20
"""The longest line that is read whole, in bytes; a longer one is answered with an error."""

_CHUNK: Final = 1 << 16


class LineReader:
    """Yields the lines that arrive on a file descriptor, without their ends.

    A line of more than *limit* bytes is cut somewhere after *limit*, so its length shows it. The
    blocking reads happen in a daemon thread: unlike a pooled one, it does not keep the process
    from ending while the client holds the pipe open.

    Args:
        on_end: Called in that thread at the end of the input.
    """

    def __init__(
        self, descriptor: int, limit: int = MAX_LINE, on_end: Callable[[], None] = lambda: None
    ) -> None:
        self._descriptor = descriptor
        self.limit = limit
        self._on_end = on_end

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[list[bytes]] = asyncio.Queue(maxsize=1)
        reader = threading.Thread(target=self._read, args=(loop, chunks), daemon=True)
        reader.start()
        while lines := await chunks.get():
            for line in lines:
                yield line

    def _read(self, loop: asyncio.AbstractEventLoop, chunks: asyncio.Queue[list[bytes]]) -> None:
        for lines in _split_lines(self._chunks(), self.limit):
            if not _put(loop, chunks, lines):
                return
        self._on_end()
        _put(loop, chunks, [])

    def _chunks(self) -> Iterator[bytes]:
        try:
            while data := os.read(self._descriptor, _CHUNK):
                yield data
        except OSError:
            return  # treated like the end


async def read_lines(
    stream: asyncio.StreamReader, limit: int = MAX_LINE
) -> AsyncGenerator[list[bytes]]:
    """Yield the lines that each chunk of a stream completes, without their ends.

    Raises:
        ValueError: A line has more than *limit* bytes.
    """
    begun = bytearray()
    while data := await stream.read(_CHUNK):
        head, *rest = data.split(b"\n")
        begun += head
        if len(begun) > limit:
            raise ValueError("a line is too long")
        if rest:
            *whole, last = rest
            yield [bytes(begun), *whole]
            begun = bytearray(last)
    if begun:
        yield [bytes(begun)]


class LineWriter:
    """Writes text to a file descriptor off the event loop.

    It has a thread of its own, so that answers get out while tools occupy all others. A write that
    is cancelled is abandoned: the client may never read again.

    Args:
        on_broken: Called once, when a write fails; what is written later is dropped.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[OSError], None]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._broken = False
        self._limiter = anyio.CapacityLimiter(1)

    async def write(self, text: str) -> None:
        """Write all of *text*."""
        if self._broken:
            return
        try:
            await anyio.to_thread.run_sync(
                self._write_all, text.encode(), abandon_on_cancel=True, limiter=self._limiter
            )
        except OSError as exc:
            if not self._broken:
                self._broken = True
                self._on_broken(exc)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def _split_lines(chunks: Iterable[bytes], limit: int) -> Iterator[list[bytes]]:
    """Yield the lines that each chunk completes, and at the end what is left over."""
    begun = bytearray()
    for data in chunks:
        head, *rest = data.split(b"\n")
        if len(begun) <= limit:
            begun += head
        if rest:
            *whole, last = rest
            yield [bytes(begun), *whole]
            begun = bytearray(last)
    if begun:
        yield [bytes(begun)]


def _put(
    loop: asyncio.AbstractEventLoop, chunks: asyncio.Queue[list[bytes]], lines: list[bytes]
) -> bool:
    """Hand lines to the event loop, waiting for room; False once the loop is gone."""
    try:
        asyncio.run_coroutine_threadsafe(chunks.put(lines), loop).result()
    except (RuntimeError, concurrent.futures.CancelledError):
        return False
    return True
