"""When what an embedded store has written is on the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from qdrant_client import QdrantClient


@contextmanager
def one_sync(client: QdrantClient, name: str) -> Generator[None]:
    """Let the disk be waited for once for all points that are written meanwhile.

    The client commits each point by itself. In SQLite's write-ahead log a commit survives the end
    of the process at once, and the checkpoint lets all of them survive that of the machine.
    """
    connection = _connection(client, name)
    if connection is None:
        yield
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA synchronous = FULL")


def _connection(client: QdrantClient, name: str) -> sqlite3.Connection | None:
    """Return the database of a collection, None where there is none, or in another version."""
    found: object = client
    for attribute in ("_client", "collections"):
        found = getattr(found, attribute, None)
    collections = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    collection = collections.get(name)
    for attribute in ("storage", "storage"):
        collection = getattr(collection, attribute, None)
    return collection if isinstance(collection, sqlite3.Connection) else None
