"""The mark in the database of a catalog that `data pull` keeps: a copy, which only pulls change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from standards_mcp_catalog.errors import CatalogError

from .database import Database

_KEY: Final = "copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The snapshot that a catalog is a copy of.

    Attributes:
        publisher: The public key of the publisher.
        counter: The counter of the snapshot.
        database: A digest of the database in the snapshot.
        index: A digest of the files of the index in the snapshot.
        folder: The name of the folder that has these files.
    """

    publisher: str
    counter: int
    database: str
    index: str
    folder: str


def copy_of(database: Database) -> Copy | None:
    """Return the snapshot that *database* is a copy of, or None."""
    text = database.meta(_KEY, "")
    return Copy(**json.loads(text)) if text else None


def mark(database: Database, copy: Copy) -> None:
    """Mark *database* as a copy."""
    database.set_meta(_KEY, json.dumps(asdict(copy)))


def check_changeable(database: Database) -> None:
    """Raise a `CatalogError` if *database* is a copy: the next pull would undo every change."""
    if copy := copy_of(database):
        raise CatalogError(
            f"nothing was changed: this catalog is a copy of snapshot {copy.counter} of the "
            f"publisher {copy.publisher[:16]}..., which only `standards-mcp data pull` changes and "
            "repairs. Change the publisher's catalog and run `standards-mcp data publish` there. "
            "For a catalog of your own, run `standards-mcp data export --output all.jsonl`, "
            "set [plugins.catalog] path to a new folder, and import the file"
        )
