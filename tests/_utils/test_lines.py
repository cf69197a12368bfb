from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from support.waiting import WAIT, until

from standards_mcp._utils.lines import DescriptorLines
from standards_mcp._utils.messages import LineReader, LineWriter

pytestmark = pytest.mark.anyio
Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


async def _lines(reader: int) -> list[bytes]:
    return [line async for line in LineReader(DescriptorLines(reader))]


def _feed(writer: int, *chunks: bytes) -> None:
    for chunk in chunks:
        os.write(writer, chunk)
    os.close(writer)


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntwo\n"], [b"one", b"two"]),
        ([b"one\ntwo"], [b"one", b"two"]),
        ([b"o", b"n", b"e\nt", b"wo\n"], [b"one", b"two"]),
        (["😀\n".encode()[:2], "😀\n".encode()[2:]], ["😀".encode()]),
        ([b"\n\none\n"], [b"", b"", b"one"]),
        ([b"one\r\n"], [b"one\r"]),
        ([], []),
        ([b"\xff\xfe\n"], [b"\xff\xfe"]),
        (["\u2028 is no line end\n".encode()], ["\u2028 is no line end".encode()]),
        ([b"a\0b\n"], [b"a\0b"]),
    ],
)
async def test_lines_are_read_as_they_come(pipe: Pipe, chunks: list[bytes], lines: list[bytes]):
    _feed(pipe[1], *chunks)
    assert await _lines(pipe[0]) == lines


def _write_all(writer: int, data: bytes) -> None:
    while data:
        data = data[os.write(writer, data) :]
    os.close(writer)


async def test_a_line_over_the_limit_is_cut_and_the_next_ones_are_whole(pipe: Pipe):
    data = b"before\n" + b"x" * 1_000_000 + b"\nafter\n" + b"y" * 200_000 + b"\nend\n"
    feeder = threading.Thread(target=_write_all, args=(pipe[1], data))
    feeder.start()
    lines = [line async for line in LineReader(DescriptorLines(pipe[0], limit=1000))]
    feeder.join()
    assert [lines[0], lines[2], lines[4]] == [b"before", b"after", b"end"]
    assert all(1000 < len(line) < 150_000 for line in (lines[1], lines[3]))


async def test_texts_reach_a_full_socket_whole_and_in_order():
    ours, theirs = socket.socketpair()
    texts = [f"{number} {'é' * 50_000}\n" for number in range(10)]
    received = bytearray()

    def read() -> None:
        while chunk := theirs.recv(1 << 16):
            received.extend(chunk)

    thread = threading.Thread(target=read)
    writer = LineWriter(ours.fileno(), on_broken=pytest.fail)
    async with anyio.create_task_group() as group:
        for text in texts:
            group.start_soon(writer.write, text)
        await anyio.lowlevel.checkpoint()  # the first ones have filled the socket
        thread.start()
    ours.shutdown(socket.SHUT_WR)
    thread.join()
    for end in (ours, theirs):
        end.close()
    assert received.decode() == "".join(texts)


async def test_a_client_that_left_is_noticed_once_and_the_rest_is_dropped(pipe: Pipe):
    broken: list[OSError] = []
    writer = LineWriter(pipe[1], on_broken=broken.append)
    os.close(pipe[0])
    for _ in range(3):
        await writer.write("line\n")
    assert [type(exc) for exc in broken] == [BrokenPipeError]


async def test_answers_get_out_while_tools_hold_every_worker_thread(pipe: Pipe):
    release = threading.Event()
    writer = LineWriter(pipe[1], on_broken=pytest.fail)
    limiter = anyio.to_thread.current_default_thread_limiter()
    tokens, limiter.total_tokens = limiter.total_tokens, 2
    try:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(anyio.to_thread.run_sync, release.wait)
            await anyio.sleep(0.02)
            try:
                with anyio.fail_after(WAIT):
                    await writer.write("line\n")
            finally:
                release.set()
    finally:
        limiter.total_tokens = tokens
    assert os.read(pipe[0], 100) == b"line\n"


async def test_writing_to_a_client_that_does_not_read_can_be_cancelled(pipe: Pipe):
    writer = LineWriter(pipe[1], on_broken=lambda _: None)
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as group:
            group.start_soon(writer.write, "x" * 1_000_000)
            await until(lambda: select.select([pipe[0]], [], [], 0)[0])  # its thread writes
            group.cancel_scope.cancel()
    left = 1_000_000
    while left:  # so that the thread ends before its descriptor is another's
        left -= len(os.read(pipe[0], left))
