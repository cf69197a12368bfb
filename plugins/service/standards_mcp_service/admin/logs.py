"""The last lines of the service's log and of the audit log."""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from standards_mcp.transports import Host, PlainFormatter, Principal, reason_of
from standards_mcp_service.audit_chain import verify_part

from .plugin_pages import Show

MOST_LINES: Final = 200
_KEPT: Final = 2000
_MAX_CHARACTERS: Final = 4000
_TAIL_BYTES: Final = 2**20
_LEVELS: Final = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_PLUGINS: Final = "standards_mcp.plugins."
_LINKS: Final = ("chain", "entry", "previous", "digest")


class Line(NamedTuple):
    """A line of a log.

    Attributes:
        level: The name of the level, in lower case.
        number: The number of the level.
        plugin: The plugin that it is about, or an empty string.
    """

    time: str
    level: str
    number: int
    plugin: str
    text: str


class RecentLog(logging.Handler):
    """Keep the last lines of this process, with secrets masked as in the log itself."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.setFormatter(PlainFormatter(host.secrets, tracebacks=True))
        self._lines = deque[Line](maxlen=_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line of a record, or its beginning if it is long."""
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001  - of a plugin's object; the log itself has the same
            return
        level = record.levelname.lower()
        plugin = getattr(record, "plugin", None)
        if not isinstance(plugin, str):
            plugin = record.name.removeprefix(_PLUGINS).partition(".")[0]
            plugin = plugin if record.name.startswith(_PLUGINS) else ""
        at = f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%d %H:%M:%S}"
        text = _cut(text.removeprefix(f"{level}: "))
        self._lines.append(Line(at, level, record.levelno, plugin[:_MAX_CHARACTERS], text))

    def lines(self) -> list[Line]:
        """Return the lines, the newest first."""
        return [*reversed(self._lines.copy())]

    @contextmanager
    def attached(self) -> Generator[None]:
        """Keep lines while the context is open."""
        # The host's records do not reach the root logger.
        loggers = logging.getLogger(), logging.getLogger("standards_mcp")
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)


class LogPage:
    """The page with the last lines."""

    def __init__(self, host: Host, recent: RecentLog, show: Show) -> None:
        self._host, self._recent, self._show = host, recent, show

    async def get(self, request: Request, principal: Principal) -> Response:
        """Show the lines that pass the filters of the form."""
        del principal
        query = {name: request.query_params.get(name, "").strip() for name in _FILTERS}
        path = self._host.settings.server.audit.path
        is_audit = query["log"] == "audit"
        chain = problem = ""
        if not is_audit:
            lines = self._recent.lines()
        elif path is None:
            lines, problem = [], "No audit log is configured: [server.audit] path is not set."
        else:
            lines, chain, problem = await to_thread.run_sync(_audit_lines, path)
        plugins = sorted({line.plugin for line in lines if line.plugin})
        chosen = _filtered(lines, query)
        return self._show(
            request,
            "log.html",
            query=query,
            is_audit=is_audit,
            plugins=plugins,
            levels=list(_LEVELS),
            lines=chosen[:MOST_LINES],
            is_cut=len(chosen) > MOST_LINES,
            most_lines=MOST_LINES,
            chain=chain,
            problem=problem,
            file=str(path or ""),
        )


_FILTERS: Final = ("log", "level", "plugin", "text")


def _filtered(lines: Iterable[Line], query: dict[str, str]) -> list[Line]:
    lowest, plugin = _LEVELS.get(query["level"], 0), query["plugin"]
    text = query["text"].casefold()
    return [
        line
        for line in lines
        if line.number >= lowest
        and (not plugin or line.plugin == plugin)
        and (not text or text in line.text.casefold())
    ]


def _audit_lines(path: Path) -> tuple[list[Line], str, str]:
    """Return the last lines of the audit log, a problem of their chain, and why there are none."""
    try:
        if not path.is_file():  # reading from a pipe would wait
            raise FileNotFoundError(None, "it is not a file")
        raw = _tail(path)
    except OSError as exc:
        return [], "", f"The audit log {path} cannot be read: {reason_of(exc)}."
    return [_audit_line(line) for line in reversed(raw)], verify_part(raw), ""


def _tail(path: Path) -> list[bytes]:
    """Return the last whole lines of a file, up to a megabyte."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        # One byte more tells whether the first line is whole.
        start = file.seek(max(size - _TAIL_BYTES - 1, 0))
        data = file.read(_TAIL_BYTES + 1)
    lines = data.split(b"\n")
    # What follows the last line feed is empty, or being written.
    return [line for line in lines[1 if start else 0 : -1] if line.strip()]


def _audit_line(raw: bytes) -> Line:
    try:
        data: dict[str, Any] = json.loads(raw)
        facts = {key: value for key, value in data.items() if key not in _LINKS}
        at = str(facts.pop("time")).replace("T", " ")[:19]
    except (ValueError, KeyError, AttributeError, RecursionError):
        text = raw[:_MAX_CHARACTERS].decode(errors="replace")
        return Line("", "error", logging.ERROR, "", f"not an entry: {text}")
    is_error = facts.get("outcome") in ("error", "failed")
    level = "error" if is_error else "info"
    event = str(facts.pop("event", ""))
    text = f"{event} {json.dumps(facts, ensure_ascii=False)}"
    return Line(at, level, _LEVELS[level], str(facts.get("plugin", "")), _cut(text))


def _cut(text: str) -> str:
    more = len(text) - _MAX_CHARACTERS
    return f"{text[:_MAX_CHARACTERS]}... {more:,} more characters" if more > 0 else text
