"""Puts what another program writes into the log: one record a line, and a bounded number."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from standards_mcp._utils.logs import STANDARD_FIELDS

log = logging.getLogger(__name__)

_FAILURES: Final = "standards_mcp.loading.manager"
MAX_TEXT: Final = 2000
"""Characters of a line that are kept."""
MAX_LINES: Final = 200
"""Lines that are taken in a span of time; the others are counted."""
SPAN_SECONDS: Final = 10.0
_CHUNK: Final = 1 << 16
_END_LINES: Final = 5
_OF_HOST: Final = re.compile(r'\{"time": "[^"]+", "level": "\w+", "logger": "standards_mcp\b')


class OutputLog:
    """The output of one program.

    Args:
        name: What the records call it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._since = 0.0
        self._count = 0
        self._dropped = 0
        self.last_line = ""

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        """Log every line until the end of *stream*."""
        rest_of_line = b""
        while stream and (data := await stream.read(_CHUNK)):
            *lines, rest_of_line = (rest_of_line + data).split(b"\n")
            # Of a flood, only the end is read: the host has other things to do.
            taken = lines if self._count < MAX_LINES else lines[-_END_LINES:]
            self._dropped += len(lines) - len(taken)
            for line in taken:
                self._take(line)
            rest_of_line = rest_of_line[: 4 * MAX_TEXT]
            await asyncio.sleep(0)  # what is there already is read without waiting
        self._take(rest_of_line)
        self._tell_dropped()

    def note(self, text: str) -> None:
        """Log what is wrong with its output."""
        self._log(logging.WARNING, "output", {"text": text})

    def _take(self, line: bytes) -> None:
        # What a terminal would act on has no meaning in a log.
        text = line[: 4 * MAX_TEXT].decode(errors="replace").strip()
        text = "".join(char if char.isprintable() else " " for char in text[:MAX_TEXT])
        if text.strip():
            if record := _record_of_host(line, text):
                self._log(record.pop("level"), record.pop("event"), record)
            else:
                self.last_line = text
                self._log(logging.INFO, "output", {"text": text})

    def _log(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now - self._since > SPAN_SECONDS:
            self._tell_dropped()
            self._since, self._count = now, 0
        self._count += 1
        if self._count > MAX_LINES:
            self._dropped += 1
            return
        log.log(level, event, extra={**fields, "plugin": self._name})

    def _tell_dropped(self) -> None:
        if self._dropped:
            fields = {"plugin": self._name, "lines": self._dropped}
            log.warning("output was dropped: it was too much", extra=fields)
            self._dropped = 0


def _record_of_host(line: bytes, text: str) -> dict[str, Any] | None:
    """Return a record of the host that serves an isolated plugin; None for any other line.

    It tells of calls, as a record of this host would, and not of an end.
    """
    if not _OF_HOST.match(text):
        return None
    try:
        found: dict[str, Any] = json.loads(line)
        level = logging.getLevelNamesMapping()[found.pop("level").upper()]
        if found.get("logger") == _FAILURES:
            level = logging.DEBUG  # it tells this host, too, which logs the reason
        event = str(found.pop("event"))
    except (ValueError, KeyError, AttributeError, RecursionError):
        return None
    rest = STANDARD_FIELDS | {"time", "logger"}
    fields = {key: value for key, value in found.items() if key not in rest}
    return {**fields, "level": level, "event": event}
