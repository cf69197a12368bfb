"""Create, check and open the SQLite file of a catalog."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from standards_mcp.commands import upgrade_command
from standards_mcp.files import full_disk, write_private
from standards_mcp_backup import IMMUTABLE, may_be_immutable
from standards_mcp_catalog.errors import CatalogUnavailableError

APPLICATION_ID = 0x53744D43  # "StMC"
SCHEMA_VERSION = 2
_BUSY_SECONDS = 60
_WRITE_CACHE = 256 * 1024  # KiB; with SQLite's 2 MiB a page of an index is written many times over
_Stamp: TypeAlias = tuple[int, int, int]
_RESTORE = "restore it from a copy, or move it away and import the standards again"
_ADVICE: Mapping[int | None, str] = {
    sqlite3.SQLITE_NOTADB: _RESTORE,
    sqlite3.SQLITE_CORRUPT: _RESTORE,
    sqlite3.SQLITE_BUSY: "another program is using it; try again when that is done",
    None: "check that it can be read and written, or set [plugins.catalog] path "
    "(STANDARDS_MCP_PLUGINS__CATALOG__PATH) to another folder",
}

_SCHEMA = """
CREATE TABLE state (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE sets (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, subject TEXT NOT NULL,
    jurisdiction_id TEXT NOT NULL, jurisdiction_title TEXT NOT NULL,
    license TEXT, source_url TEXT
) WITHOUT ROWID;
CREATE TABLE records (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, set_id TEXT NOT NULL,
    parent_id TEXT, subject TEXT NOT NULL, education_levels TEXT NOT NULL,
    description TEXT NOT NULL, text_hash TEXT, body TEXT NOT NULL
);
CREATE INDEX records_by_set ON records (set_id, subject, education_levels);
CREATE INDEX records_by_text ON records (text_hash);
CREATE TABLE keys (
    key TEXT NOT NULL, record_id TEXT NOT NULL, PRIMARY KEY (key, record_id)
) WITHOUT ROWID;
CREATE INDEX keys_by_record ON keys (record_id);
CREATE TABLE embeddings (
    number INTEGER PRIMARY KEY, model TEXT NOT NULL, text_hash TEXT NOT NULL,
    vector BLOB NOT NULL, UNIQUE (model, text_hash)
);
CREATE TABLE crosswalks (id TEXT PRIMARY KEY, title TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE relations (
    is_crosswalk INTEGER NOT NULL, stated_by TEXT NOT NULL, start TEXT NOT NULL,
    kind TEXT NOT NULL, finish TEXT NOT NULL,
    PRIMARY KEY (is_crosswalk, stated_by, start, kind, finish)
) WITHOUT ROWID;
CREATE INDEX relations_by_start ON relations (start, kind);
CREATE INDEX relations_by_finish ON relations (finish, kind);
"""


def create_database(path: Path) -> None:
    """Create an empty catalog at *path* atomically.

    The caller holds the catalog's lock: a catalog that another process creates meanwhile would be
    replaced.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    with _translated_errors(path):
        temporary.unlink(missing_ok=True)
        write_private(temporary, "")  # SQLite gives the mode of the file to its journals
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.executescript(
                f"PRAGMA journal_mode = WAL; BEGIN; {_SCHEMA}"
                f"PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        finally:
            connection.close()
        # The journal of a database that was moved away would be replayed into the new one.
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        temporary.replace(path)


class SqliteFile:
    """An open SQLite file. Threads may share one object; statements run one at a time.

    A file in a read-only folder can be read, but not written.

    Args:
        path: A file that `create_database` has created.

    Raises:
        CatalogUnavailableError: The file is not a catalog, is damaged, or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._immutable_stamp: _Stamp | None = None
        with _translated_errors(path):
            self._connection = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def select(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._lock, _translated_errors(self._path):
            return self._current_connection().execute(statement, values).fetchall()

    def stream(self, statement: str, values: Sequence[Any] = ()) -> Generator[Any, None, None]:
        """Yield the rows of a query; other threads wait until it is exhausted."""
        with self._lock, _translated_errors(self._path):
            yield from self._current_connection().execute(statement, values)

    def run(self, statement: str, rows: Iterable[Sequence[Any]] = ((),)) -> None:
        """Run a statement once for each of *rows*, inside a `transaction`."""
        self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Commit the statements of the block together, or roll all back if the block raises."""
        with self._lock, _translated_errors(self._path):
            self._connection.execute(f"PRAGMA cache_size = -{_WRITE_CACHE}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
            self._connection.execute("PRAGMA shrink_memory")

    def copy_to(self, path: Path) -> None:
        """Write a compact copy to a new file. Equal databases have equal copies."""
        with self._lock, _translated_errors(path):
            self._connection.execute("VACUUM INTO ?", (str(path),))

    def truncate_journal(self) -> None:
        """Move what the journal has into the file, and give its room back."""
        with self._lock, _translated_errors(self._path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _open(self) -> sqlite3.Connection:
        stamp = None
        try:
            connection = self._connect("mode=rw")
        except sqlite3.OperationalError as error:
            stamp = _stamp(self._path)  # before the search, since a writer may begin after it
            if not may_be_immutable(self._path, error):
                raise
            connection = self._connect(IMMUTABLE)
        self._immutable_stamp = stamp  # `_current_connection` looks for changes
        return connection

    def _connect(self, options: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?{options}", uri=True, timeout=_BUSY_SECONDS,
            isolation_level=None, check_same_thread=False,
        )  # fmt: skip
        try:
            _check(connection, self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _current_connection(self) -> sqlite3.Connection:
        if self._immutable_stamp is not None and self._immutable_stamp != _stamp(self._path):
            earlier, self._connection = self._connection, self._open()
            earlier.close()
        return self._connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if int(connection.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:
        raise CatalogUnavailableError(
            f"{path} is not a catalog of standards; move it away or set another "
            "[plugins.catalog] path"
        )
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version != SCHEMA_VERSION:
        advice = f"upgrade with `{upgrade_command()}`"
        if version < SCHEMA_VERSION:
            advice = "move it away and import the standards again"
        raise CatalogUnavailableError(
            f"{path} has the schema {version}, and this standards-mcp reads {SCHEMA_VERSION}; "
            f"{advice}"
        )


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


@contextmanager
def _translated_errors(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = f"{error}; {_ADVICE.get(_code(error), _ADVICE[None])}"
        if full_disk.is_full(error, path):
            reason = full_disk.MESSAGE
        raise CatalogUnavailableError(f"cannot use {path}: {reason}") from error


def _code(error: Exception) -> int | None:
    """Return the primary result code of an error of SQLite, or None for other errors."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF
