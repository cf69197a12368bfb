"""Copy and overwrite SQLite databases that other processes are using."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from standards_mcp.files import file_stamp, full_disk, open_private

from .errors import BackupError

_BUSY_SECONDS: Final = 60.0
_DAMAGED: Final = "; it is damaged: move it away, and restore a backup"
_NO_WRITE_CODES: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
IMMUTABLE: Final = "mode=ro&immutable=1"
"""How to open a database that cannot be written, and for which `may_be_immutable` is true.

SQLite then looks neither for a journal nor for changes, so whoever opens it must.
"""


def copy_database(source: Path, target: Path) -> None:
    """Write one state of a database to a new file, while other processes may be writing.

    This user need not have the right to write the database.

    Raises:
        BackupError: The database is damaged or in use for too long, or the copy cannot be written.
    """
    with _explained(source, _DAMAGED):
        open_private(target).close()
        with _reading(source) as connection, closing(_connect(target)) as copy:
            # In one step: between two steps, another process could write, and the copy begin anew.
            connection.backup(copy, progress=_limit(source))
        _check(target)


def check_database(path: Path) -> None:
    """Read all pages of a database.

    Raises:
        BackupError: The file is no database, or is damaged.
    """
    with _explained(path):
        _check(path)


def overwrite_database(target: Path, source: Path) -> None:
    """Replace the content of a database by that of another one, in a single transaction.

    Other processes may have the target open: they see the old content until the end, then the new
    one. If this process is killed, the old content stays.

    Raises:
        BackupError: The target is damaged, has another page size, or is in use for too long.
    """
    with (
        _explained(target, _DAMAGED),
        closing(_connect(source)) as connection,
        closing(_connect(target)) as overwritten,
    ):
        connection.backup(overwritten, progress=_limit(target))


def may_be_immutable(path: Path, error: sqlite3.OperationalError) -> bool:
    """Return True if a database may be opened as `IMMUTABLE`: it is read-only, and has no journal.

    Args:
        error: Why SQLite could not read the database in the usual way.
    """
    for ending in ("-wal", "-journal"):
        journal = path.with_name(path.name + ending)
        if journal.exists() and journal.stat().st_size > 0:
            return False
    return error.sqlite_errorcode & 0xFF in _NO_WRITE_CODES or full_disk.is_full(error, path)


@contextmanager
def _reading(path: Path) -> Generator[sqlite3.Connection]:
    """Open a database, also one that this user cannot write.

    Raises:
        BackupError: Another user's process has written it meanwhile.
    """
    before = file_stamp(path)  # before the search for a journal, since a writer may begin after it
    with closing(_connect(path)) as connection:
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError as error:
            if not may_be_immutable(path, error):
                raise
        else:
            yield connection
            return
    with closing(_connect(path, IMMUTABLE)) as connection:
        yield connection
    if file_stamp(path) != before:
        raise BackupError(f"{path}: another process has written it meanwhile; try again")


def _check(path: Path) -> None:
    with closing(_connect(path)) as connection:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise sqlite3.DatabaseError(" ".join(result.split()))


def _connect(path: Path, options: str = "mode=rw") -> sqlite3.Connection:
    # Not read-only: what a killed process left in the journal must be applied first.
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=_BUSY_SECONDS)


def _limit(path: Path) -> Callable[[int, int, int], None]:
    """Return the progress callback of a backup, which would wait for other processes for ever."""
    end = time.monotonic() + _BUSY_SECONDS

    def check(status: int, _remaining: int, _total: int) -> None:
        if status != sqlite3.SQLITE_DONE and time.monotonic() > end:
            raise BackupError(f"{path}: another process keeps using it; try again later")

    return check


@contextmanager
def _explained(path: Path, advice: str = "") -> Generator[None]:
    """Explain errors.

    Args:
        advice: What to add if the database is damaged.

    Raises:
        BackupError: The database or a file cannot be used; the message names *path*.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = full_disk.MESSAGE if full_disk.is_full(error, path) else error
        is_damaged = type(error) is sqlite3.DatabaseError  # subclasses have other causes
        raise BackupError(f"{path}: {reason}{advice if is_damaged else ''}") from error
