"""Log the output of another program: one record for each line, up to a limit."""

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
"""The limit for the characters of a line."""
MAX_LINES: Final = 200
"""The limit for the lines in a span of time; the others are counted."""
SPAN_SECONDS: Final = 10.0
_CHUNK: Final = 1 << 16
_END_LINES: Final = 5
_OF_HOST: Final = re.compile(r'\{"time": "[^"]+", "level": "\w+", "logger": "standards_mcp\b')


class OutputLog:
    """The output of one program.

    Args:
        name: The plugin's name in the records.
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
            # Of a flood, only the last lines are read, to save the host's time.
            taken = lines if self._count < MAX_LINES else lines[-_END_LINES:]
            self._dropped += len(lines) - len(taken)
            for line in taken:
                self._take(line)
            rest_of_line = rest_of_line[: 4 * MAX_TEXT]
            await asyncio.sleep(0)  # available data is read without waiting
        self._take(rest_of_line)
        self._log_dropped()

    def note(self, text: str) -> None:
        """Log a mistake in its output."""
        self._log(logging.WARNING, "output", {"text": text})

    def _take(self, line: bytes) -> None:
        # Terminal control characters have no meaning in a log.
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
            self._log_dropped()
            self._since, self._count = now, 0
        self._count += 1
        if self._count > MAX_LINES:
            self._dropped += 1
            return
        log.log(level, event, extra={**fields, "plugin": self._name})

    def _log_dropped(self) -> None:
        if self._dropped:
            fields = {"plugin": self._name, "lines": self._dropped}
            log.warning("output was dropped: it was too much", extra=fields)
            self._dropped = 0


def _record_of_host(line: bytes, text: str) -> dict[str, Any] | None:
    """Return a record that the host in an isolated plugin's process logged; else None.

    Such records are about calls, so they do not count as the last words of the process.
    """
    if not _OF_HOST.match(text):
        return None
    try:
        record: dict[str, Any] = json.loads(line)
        level = logging.getLevelNamesMapping()[record.pop("level").upper()]
        if record.get("logger") == _FAILURES:
            level = logging.DEBUG  # this host logs the reason itself
        event = str(record.pop("event"))
    except (ValueError, KeyError, AttributeError, RecursionError):
        return None
    rest = STANDARD_FIELDS | {"time", "logger"}
    fields = {key: value for key, value in record.items() if key not in rest}
    return {**fields, "level": level, "event": event}
