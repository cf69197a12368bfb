"""Copies of databases that are damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

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
