"""The SQLite database, in a file or in memory: connections, transactions and counters."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from sqlalchemy import URL, Connection, Engine, QueuePool, Row, create_engine, event, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from standards_mcp import ApiError, InvalidInputError

from .tables import id_counters

T = TypeVar("T")
_CONNECTIONS: Final = 16
"""The number of threads that the host has for a plugin."""
_SECONDS: Final = 15
"""Maximum wait for another writer."""
_compact = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class Store:
    """A database for several threads, with one transaction for each.

    A database in memory has one connection, for which threads queue. So a thread inside of one
    transaction must not begin another.

    Args:
        path: The file, or None for a database in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._reads = _engine(path)
        self._writes = self._reads.execution_options(is_writer=True)

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Begin a transaction that sees one state of the database.

        Raises:
            ApiError: The database fails.
            InvalidInputError: A text has a lone surrogate.
        """
        with _translated_errors(self.path), self._reads.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Begin the only writing transaction. An error rolls it back.

        Raises:
            ApiError: The database fails.
            InvalidInputError: A text has a lone surrogate.
        """
        with _translated_errors(self.path), self._writes.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._reads.dispose()


def _engine(path: Path | None) -> Engine:
    if path is not None:
        _prepare(path)
    engine = create_engine(
        URL.create("sqlite", database=str(path) if path else ":memory:"),
        poolclass=QueuePool,
        # One implementation for both: in memory, threads queue for the only connection.
        pool_size=_CONNECTIONS if path else 1,
        max_overflow=0,
        pool_timeout=_SECONDS,
        connect_args={"check_same_thread": False, "timeout": _SECONDS},
        json_serializer=_compact,
        json_deserializer=_parsed,
        hide_parameters=True,
    )
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _parsed(stored: str) -> Any:
    """Parse a JSON column. Other content, as of another program, becomes ``{"text": ...}``."""
    try:
        return json.loads(stored)
    except (ValueError, RecursionError):
        return {"text": stored}


def _prepare(path: Path) -> None:
    """Create the file, readable by its user only, because it contains resumes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except OSError as error:
        raise _failed(path, error.strerror or str(error)) from error


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    # Else the driver begins transactions by itself, but not before CREATE TABLE.
    connection.isolation_level = None
    _write_ahead(connection)
    connection.execute("PRAGMA foreign_keys = ON").close()


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set the journal mode that allows reading while another process writes."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            # `synchronous` stays FULL: if a power cut took a receipt away, an event would be
            # applied twice. Three commits take 5 ms.
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            # SQLite does not wait for a lock that it upgrades, so this loop does.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _begin(connection: Connection) -> None:
    is_writer = connection.get_execution_options().get("is_writer", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")


@contextmanager
def _translated_errors(path: Path | None) -> Generator[None]:
    try:
        yield
    except DBAPIError as error:
        # The error's own text would contain the statement.
        raise _failed(path, str(error.orig)) from error
    except UnicodeEncodeError as error:
        raise InvalidInputError("A text has a lone surrogate (half of a character).") from error
    except PoolTimeoutError as error:
        raise _failed(path, "all its connections are in use; try again") from error


def _failed(path: Path | None, cause: str) -> ApiError:
    name = "in memory" if path is None else str(path)
    return ApiError(f"The database ({name}) failed: {cause}. Its key is plugins.career.db.")


def record_of(kind: type[T], row: Row[Any]) -> T:
    """Return a row as a dataclass, by the names of its fields."""
    return kind(**{field.name: getattr(row, field.name) for field in fields(cast("Any", kind))})


def next_number(connection: Connection, name: str) -> int:
    """Increment a counter and return its value, 0 for a new counter."""
    first = insert(id_counters).values(name=name, value=0)
    counted = first.on_conflict_do_update(
        index_elements=["name"], set_={"value": id_counters.c.value + 1}
    )
    number: int = connection.execute(counted.returning(id_counters.c.value)).scalar_one()
    return number


def last_number(connection: Connection, name: str) -> int:
    """Return the value of a counter, -1 for a new one."""
    value = select(id_counters.c.value).where(id_counters.c.name == name)
    found = connection.scalar(value)
    return -1 if found is None else found
