"""A full disk is told as one, whatever library met it."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from standards_mcp._utils.full_disk import MESSAGE, is_full, reason_of


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


def test_the_codes_of_the_system_say_so():
    assert is_full(OSError(errno.ENOSPC, "No space left on device"))
    assert is_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert not is_full(PermissionError(errno.EACCES, "Permission denied"))
    assert reason_of(OSError(errno.ENOSPC, "No space left on device")) == MESSAGE
    assert reason_of(PermissionError(errno.EACCES, "Permission denied")) == "Permission denied"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_so_does_numpy_without_a_code():
    np = pytest.importorskip("numpy")
    with (
        Path("/dev/full").open("wb", buffering=0) as file,
        pytest.raises(OSError, match="requested and") as caught,
    ):
        np.zeros(10_000).tofile(file)
    assert is_full(caught.value)


def test_so_does_the_full_text_index_in_its_text():
    text = "An IO error occurred: 'No space left on device (os error 28) at path \"/x\"'"
    assert is_full(ValueError(text))
    assert not is_full(ValueError("the index is damaged"))


def test_so_does_sqlite(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "file", isolation_level=None)
    connection.execute("CREATE TABLE t (x)")
    connection.execute("PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.Error) as caught:
        connection.execute("INSERT INTO t VALUES (zeroblob(1000000))")
    connection.close()
    assert is_full(caught.value)


def test_any_other_error_of_sqlite_counts_where_no_space_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    error, missing = sqlite_error(sqlite3.SQLITE_IOERR | 18 << 8), tmp_path / "a" / "b"
    assert not is_full(error, missing)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    assert is_full(error, missing)
    assert is_full(sqlite_error(sqlite3.SQLITE_READONLY), tmp_path)
    for other in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY):
        assert not is_full(sqlite_error(other), tmp_path)
