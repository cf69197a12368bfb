"""The SQLite database, in a file or in memory."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from standards_mcp import ApiError

from .database import TIMEOUT_SECONDS, Connection, Store

_CONNECTIONS: Final = 16
"""As many as the host has threads for a plugin."""


class _SqliteConnection(sqlite3.Connection):
    @property
    def is_lost(self) -> bool:
        return False

    def stream(self, statement: str, parameters: Sequence[Any] = (), /) -> Iterable[Any]:
        return self.execute(statement, parameters)

    def run_script(self, script: str) -> None:
        statement = ""  # `executescript` would commit
        for line in script.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.execute(statement)
                statement = ""

    def has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT 1 FROM pragma_table_info(?)", (name,)).fetchall())


class SqliteStore(Store):
    """A SQLite database.

    Args:
        path: The file, or None for a database in memory.

    Raises:
        ApiError: The file cannot be created.
    """

    key = "plugins.career.db"
    first_version = 1
    is_abandoned = "TRUE"
    _begin_reading = "BEGIN"
    _begin_writing = "BEGIN IMMEDIATE"
    _errors = sqlite3.Error

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(str(path or "in memory"), _CONNECTIONS if path else 1)
        self._path = path
        if path is not None:
            self._prepare(path)

    @override
    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self._path or ":memory:",
            timeout=TIMEOUT_SECONDS,
            isolation_level=None,  # else the driver begins transactions by itself
            check_same_thread=False,
            factory=_SqliteConnection,
        )
        try:
            _write_ahead(connection)
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, path: Path) -> None:
        """Create the file, readable by its user only, because it contains resumes."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error

    @override
    def _failure(self, error: Any) -> ApiError:
        return self._error(str(error))


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set the journal mode that allows reading while another process writes."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            # `synchronous` stays FULL: if a power cut took a receipt away, an event would be
            # applied twice. Three commits take 5 ms.
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # SQLite does not wait when it upgrades a lock, so this loop waits.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
