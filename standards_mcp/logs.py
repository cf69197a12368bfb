"""Structured logs: one JSON object a line, on stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_MASK: Final = "***"


class JsonFormatter(logging.Formatter):
    """Renders a record and its ``extra`` fields as one JSON object, with secrets masked."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(sorted(secrets, key=len, reverse=True))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for *record*."""
        data: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        data |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        line = json.dumps(data, default=str)
        for secret in self._secrets:
            # The line is JSON, so a secret is looked for as JSON spells it.
            line = line.replace(json.dumps(secret)[1:-1], _MASK)
        return line


def configure_logging(level: int, secrets: Iterable[str] = ()) -> None:
    """Send every log record of at least *level* to stderr, replacing earlier handlers."""
    logging.raiseExceptions = False  # a closed stderr must not end up as more output on it
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(secrets))
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)
    logging.getLogger("standards_mcp").setLevel(level)
