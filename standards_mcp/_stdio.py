"""Newline-delimited text over two file descriptors, for a client that may vanish at any time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import anyio
import anyio.to_thread

_CHUNK: Final = 1 << 16


class LineReader:
    """Yields the lines that arrive on a file descriptor.

    The blocking reads happen in a daemon thread: unlike a pooled one, it does not keep the
    process from ending while the client holds the pipe open.

    Args:
        before_end: Awaited at end-of-file, before the iteration ends.
    """

    def __init__(self, descriptor: int, before_end: Callable[[], Awaitable[None]]) -> None:
        self._descriptor = descriptor
        self._before_end = before_end

    async def __aiter__(self) -> AsyncGenerator[str]:
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[list[bytes]] = asyncio.Queue(maxsize=1)
        reader = threading.Thread(target=self._read, args=(loop, chunks), daemon=True)
        reader.start()
        while lines := await chunks.get():
            for line in lines:
                yield line.decode(errors="replace")
        await self._before_end()

    def _read(self, loop: asyncio.AbstractEventLoop, chunks: asyncio.Queue[list[bytes]]) -> None:
        rest = b""
        while data := self._read_chunk():
            *lines, rest = (rest + data).split(b"\n")
            if lines and not _put(loop, chunks, lines):
                return
        if rest and not _put(loop, chunks, [rest]):
            return
        _put(loop, chunks, [])

    def _read_chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:
            return b""


class LineWriter:
    """Writes text to a file descriptor off the event loop.

    It has a thread of its own, so that answers get out while tools occupy all others. A write that
    is cancelled is abandoned: the client may never read again.

    Args:
        on_broken: Called once when nobody reads any more; what is written later is dropped.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
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
        except OSError:
            self._broken = True
            self._on_broken()

    async def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def _put(
    loop: asyncio.AbstractEventLoop, chunks: asyncio.Queue[list[bytes]], lines: list[bytes]
) -> bool:
    """Hand lines to the event loop, waiting for room; False once the loop is gone."""
    try:
        asyncio.run_coroutine_threadsafe(chunks.put(lines), loop).result()
    except (RuntimeError, concurrent.futures.CancelledError):
        return False
    return True
