"""What other programs write, in the log."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from standards_mcp.remote.processes import MAX_LINES, OutputLog

pytestmark = pytest.mark.anyio


async def read(data: bytes) -> OutputLog:
    stream = asyncio.StreamReader(limit=1 << 26)
    stream.feed_data(data)
    stream.feed_eof()
    log = OutputLog("acme")
    await log.read(stream)
    return log


async def test_of_a_flood_every_line_is_counted_and_the_last_are_kept_as_last_words(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO, "standards_mcp")
    logging.getLogger("standards_mcp").propagate = True
    lines = 200_000
    log = await read(b"x\n" * lines + b"the end\n")
    assert log.last_line == "the end"
    told = [record for record in caplog.records if record.getMessage() == "output"]
    dropped = [record.lines for record in caplog.records if "dropped" in record.getMessage()]
    assert len(told) == MAX_LINES
    assert len(told) + sum(dropped) == lines + 1


async def test_a_flood_leaves_the_event_loop_to_others():
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await read(b"x" * (1 << 22))
    beside.cancel()
    assert turns > 10


async def test_records_of_the_host_of_an_isolated_plugin_are_no_last_words():
    record = b'{"time": "2026-01-01", "level": "error", "logger": "standards_mcp.calls.pipeline", '
    record += b'"event": "tool crashed"}\n'
    other = b'{"time": "2026-01-01", "level": "error", "msg": "no key"}\n'
    assert (await read(b"gave up\n" + record)).last_line == "gave up"
    assert "no key" in (await read(b"gave up\n" + other)).last_line


async def test_records_of_the_host_of_an_isolated_plugin_are_records_of_this_one(
    caplog: pytest.LogCaptureFixture,
):
    fields = {"incident": "e1", "tool": "quiz", "name": "x", "plugin": "other", "rate": "5 %d"}
    origin = {"time": "2026-01-01", "level": "error", "logger": "standards_mcp.calls.pipeline"}
    line = json.dumps({**origin, "event": "tool crashed at 5 %", **fields})
    caplog.set_level(logging.INFO, "standards_mcp")
    logging.getLogger("standards_mcp").propagate = True
    await read(line.encode() + b"\n" + line[:-1].encode() + b"\n")
    whole, broken = caplog.records
    assert (whole.levelname, whole.getMessage()) == ("ERROR", "tool crashed at 5 %")
    assert (whole.incident, whole.tool, whole.rate) == ("e1", "quiz", "5 %d")
    assert whole.plugin == broken.plugin == "acme"
    assert broken.getMessage() == "output"
