"""Recognise errors of a full disk, whichever library reports them."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

MESSAGE: Final = "the disk is full; free some space on it or in your quota, then do the same again"
_CODES: Final = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))  # Windows has no EDQUOT
# tantivy repeats the system's text; NumPy reports "8 requested and 2 written".
_TEXTS: Final = (*(os.strerror(code) for code in _CODES), " requested and ")
# These codes name another cause, even if the disk is full.
_OTHER_CAUSES: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NEARLY_FULL: Final = 2**20  # bytes


def reason_of(error: OSError) -> str:
    """Return why a file cannot be written, with the next step if its disk is full."""
    return MESSAGE if is_full(error) else error.strerror or str(error)


def is_full(error: BaseException, path: Path | None = None) -> bool:
    """Return True if an error means that the disk or a quota is full.

    Args:
        path: A file or folder on the disk. SQLite reports a full disk mostly with codes for other
            errors. For these codes, the free space decides.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _CODES
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code == sqlite3.SQLITE_FULL or (
            code not in _OTHER_CAUSES and path is not None and _has_no_space(path)
        )
    return any(text in str(error) for text in _TEXTS)


def _has_no_space(path: Path) -> bool:
    with suppress(OSError):
        existing = next(place for place in (path, *path.absolute().parents) if place.exists())
        return shutil.disk_usage(existing).free < _NEARLY_FULL
    return False
