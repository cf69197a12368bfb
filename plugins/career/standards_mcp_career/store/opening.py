"""Opens the database in its newest version."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from standards_mcp import ApiError

from .database import Store

_OLDEST_SQLITE: Final = (3, 35)
"""The first that knows RETURNING."""


def open_store(path: Path | None = None) -> Store:
    """Open a database and bring it to the newest version.

    Raises:
        ApiError: It cannot be opened or migrated, or SQLite is too old.
    """
    from .migrating import migrate  # noqa: PLC0415  - Alembic takes long

    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        least = ".".join(map(str, _OLDEST_SQLITE))
        raise ApiError(
            f"This Python has SQLite {sqlite3.sqlite_version}; the plugin needs {least} or later."
        )
    store = Store(path)
    try:
        migrate(store)
    except BaseException:
        store.close()
        raise
    return store
