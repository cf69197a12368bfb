"""Structured logs: one JSON object a line, on stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_MASK: Final = "***"


class JsonFormatter(logging.Formatter):
    """Renders a record and its ``extra`` fields as one JSON object, with secrets masked."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

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
        return json.dumps(_masked(data, self._secrets))


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return *text* without the secrets, as they are or as JSON or Python spells them."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        for spelling in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
            text = text.replace(spelling, _MASK)
    return text


def _masked(value: object, secrets: Iterable[str]) -> Any:
    """Return *value* as JSON data, with the secrets masked wherever they stand."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if mask(str(value), secrets) == str(value) else _MASK
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {mask(str(key), secrets): _masked(item, secrets) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_masked(item, secrets) for item in cast("Iterable[object]", value)]
    return mask(str(value), secrets)


def configure_logging(level: int, secrets: Iterable[str] = ()) -> None:
    """Send every log record of at least *level* to stderr, replacing earlier handlers."""
    logging.raiseExceptions = False  # a closed stderr must not end up as more output on it
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(secrets))
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)
    logging.getLogger("standards_mcp").setLevel(level)
