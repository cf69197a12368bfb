"""Logs on stderr: one JSON object in each line for programs, plain text for people."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import Any, Final, TextIO, TypeAlias

from .secrets import mask, masked_data
from .text import describe_exception, printable

Secrets: TypeAlias = Callable[[], Iterable[str]]
"""Returns the secrets that are known so far."""
_JSON_ENCODER: Final = json.JSONEncoder(default=str)
_PACKAGE: Final = "standards_mcp"
PLUGIN_LOGGERS: Final = f"{_PACKAGE}.plugins"
"""The parent of the plugins' loggers; each of these has the name of its plugin."""
STANDARD_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}
"""The attributes of every record; ``extra`` fields cannot have these names."""


class JsonFormatter(logging.Formatter):
    """Renders a record and its ``extra`` fields as one JSON object, with secrets masked."""

    def __init__(self, secrets: Secrets = tuple) -> None:
        super().__init__()
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for *record*."""
        data: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        data |= {key: value for key, value in _extra(record).items() if key not in data}
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        return _JSON_ENCODER.encode(masked_data(data, self._secrets()))


class PlainFormatter(logging.Formatter):
    """Renders a record as ``level: event (field=value)``, with secrets masked.

    Fields with several lines follow this line.

    Args:
        tracebacks: Append the traceback of an exception, instead of its text in the line.
    """

    def __init__(self, secrets: Secrets = tuple, *, tracebacks: bool = False) -> None:
        super().__init__()
        self._secrets = secrets
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for *record*."""
        event = record.getMessage()
        # Leave out the fields whose text the event contains already.
        fields = {key: text for key, text in _texts_of(_extra(record)) if text not in event}
        cause = record.exc_info[1] if record.exc_info else None
        if cause and self._tracebacks:
            fields["traceback"] = "".join(traceback.format_exception(cause))
        elif cause:
            event = f"{event}: {describe_exception(cause)}"
        listed = [f"{key}={text}" for key, text in fields.items() if "\n" not in text]
        blocks = [text.rstrip() for text in fields.values() if "\n" in text]
        if listed:
            event = f"{event} ({', '.join(listed)})"
        line = " ".join(f"{record.levelname.lower()}: {event}".split())
        return printable(mask("\n".join([line, *blocks]), self._secrets()))


def configure_logging(
    level: int,
    secrets: Secrets = tuple,
    *,
    plain: bool = False,
    tracebacks: bool = False,
    stream: TextIO | None = None,
    without: Collection[str] = (),
) -> None:
    """Send log records to stderr, and remove earlier handlers.

    The host's records are logged from *level* on, records of other libraries from warnings on. The
    host has a handler of its own, which stays if a plugin configures logging for itself.

    Args:
        plain: Write plain text for people, not JSON for programs.
        tracebacks: Also write tracebacks in plain text; JSON always has them.
        stream: A stream to use instead of stderr.
        without: The names of loggers whose records are dropped.
    """
    logging.raiseExceptions = False  # logging would report a closed stderr on stderr
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        PlainFormatter(secrets, tracebacks=tracebacks) if plain else JsonFormatter(secrets)
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    handler.addFilter(lambda record: record.name not in without)
    package = logging.getLogger(_PACKAGE)
    package.handlers[:] = [handler]
    package.propagate = False
    package.setLevel(level)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    extra = {key: value for key, value in vars(record).items() if key not in STANDARD_FIELDS}
    _, is_plugins, below = str(record.name).rpartition(f"{PLUGIN_LOGGERS}.")
    if is_plugins:
        extra["plugin"] = below.partition(".")[0]
    return extra


def _texts_of(fields: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for key, value in fields.items():
        if value not in (None, ""):
            yield key, value if isinstance(value, str) else json.dumps(value, default=str)
