"""The SQLite database, in a file or in memory: connections and transactions."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from sqlite3 import Connection
from typing import Final

from standards_mcp import ApiError, InvalidInputError

_CONNECTIONS: Final = 16
"""As many as the host has threads for a plugin."""
_TIMEOUT_SECONDS: Final = 15
"""Maximum wait for another writer."""


class Store:
    """A database for several threads, with one transaction for each.

    A database in memory has one connection, for which threads queue. So a thread inside of one
    transaction must not begin another.

    Args:
        path: The file, or None for a database in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        # None is a connection that is not open yet.
        self._pool = LifoQueue[Connection | None]()
        self._is_closed = False
        for _ in range(_CONNECTIONS if path else 1):
            self._pool.put(None)
        if path is not None:
            self._prepare(path)

    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that sees one state of the database.

        Raises:
            ApiError: The database fails.
            InvalidInputError: A text has a lone surrogate.
        """
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[Connection]:
        """Begin the only writing transaction. An error rolls it back.

        Raises:
            As `reading`.
        """
        return self._transaction("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close all connections, those of running transactions after their end."""
        self._is_closed = True
        idle: list[Connection | None] = []
        with suppress(Empty):
            while True:
                idle.append(self._pool.get_nowait())
        for connection in idle:
            if connection is not None:
                connection.close()
            self._pool.put(None)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection]:
        try:
            connection = self._pool.get(timeout=_TIMEOUT_SECONDS)
        except Empty as error:
            raise self._error("all its connections are in use; try again") from error
        try:
            if self._is_closed:
                raise self._error("it is closed; restart the server")
            connection = connection or self._connect()
            connection.execute(begin)
            try:
                yield connection
                connection.commit()
            except BaseException:
                # Also after a failed commit: the next user begins a new transaction.
                connection.rollback()
                raise
        except sqlite3.Error as error:
            raise self._error(str(error)) from error
        except UnicodeEncodeError as error:
            raise InvalidInputError("A text has a lone surrogate (half of a character).") from error
        finally:
            # Still in a transaction: the rollback has failed.
            if connection and (self._is_closed or connection.in_transaction):
                connection.close()
                connection = None
            self._pool.put(connection)

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self._path or ":memory:",
            timeout=_TIMEOUT_SECONDS,
            isolation_level=None,  # else the driver begins transactions by itself
            check_same_thread=False,
        )
        connection.row_factory = sqlite3.Row
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

    def _error(self, cause: str) -> ApiError:
        name = self._path or "in memory"
        return ApiError(f"The database ({name}) failed: {cause}. Its key is plugins.career.db.")


def _write_ahead(connection: Connection) -> None:
    """Set the journal mode that allows reading while another process writes."""
    end = time.monotonic() + _TIMEOUT_SECONDS
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
