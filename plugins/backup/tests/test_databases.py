"""Copies of databases that are damaged."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.permissions import needs_permissions, not_writable

from standards_mcp_backup import copy_database, overwrite_database
from standards_mcp_backup.errors import BackupError

PAGE = 4096
Damage = Callable[[bytes], bytes]


def database(path: Path) -> Path:
    """Create a database of a few pages."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("CREATE TABLE books (title TEXT)")
        connection.executemany("INSERT INTO books VALUES (?)", [("Emma " * 100,)] * 100)
    return path


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: 2 * PAGE] + b"x" * (len(data) - 2 * PAGE),
        lambda data: b"x" * len(data),
    ],
    ids=["pages", "header"],
)
def test_a_damaged_database_is_named_rather_than_its_copy(tmp_path: Path, damage: Damage):
    damaged = database(tmp_path / "damaged.db")
    damaged.write_bytes(damage(damaged.read_bytes()))
    with pytest.raises(BackupError, match=r"damaged\.db: .* damaged: move it away") as raised:
        copy_database(damaged, tmp_path / "copy.db")
    assert "copy.db" not in str(raised.value)


def test_a_database_that_cannot_be_overwritten_is_named(tmp_path: Path):
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"x" * PAGE)
    with pytest.raises(BackupError, match=r"damaged\.db: .* damaged: move it away"):
        overwrite_database(damaged, database(tmp_path / "good.db"))


@needs_permissions
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_what_a_killed_process_left_in_the_journal_is_not_left_out(tmp_path: Path, mode: str):
    with tempfile.TemporaryDirectory() as shared, tempfile.TemporaryDirectory() as other:
        path, copy = Path(shared, "books.db"), Path(other, "books.db")
        Path(shared).chmod(0o755)
        source = database(tmp_path / path.name)
        with closing(sqlite3.connect(source)) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            connection.execute("PRAGMA cache_size = 1")  # so that changes go to the file at once
            connection.execute("UPDATE books SET title = 'Emma II'")
            if mode == "WAL":
                connection.commit()
            for file in tmp_path.glob(f"{path.name}*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, shared)
        with (
            not_writable(Path(shared)),
            tempfile.TemporaryDirectory() as own,
            pytest.raises(BackupError, match=r"books\.db"),
        ):
            copy_database(path, Path(own, "copy.db"))
        copy_database(path, copy)
        with closing(sqlite3.connect(copy)) as connection:
            titles = {title for (title,) in connection.execute("SELECT title FROM books")}
    assert titles == ({"Emma II"} if mode == "WAL" else {"Emma " * 100})
