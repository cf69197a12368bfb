"""Removes what Chroma leaves on the disk of collections that were deleted.

It keeps the vectors of a collection in a folder of their own, with the id that its table
``segments`` has, and does not remove this folder with the collection.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from uuid import UUID


def remove_orphans(folder: Path) -> None:
    """Remove the folders of vectors that no collection has."""
    # A collection has its row before its folder, so none is made between these two lines that
    # would be taken for an orphan.
    folders = [each for each in folder.iterdir() if _is_id(each.name) and each.is_dir()]
    known = _segments(folder / "chroma.sqlite3")
    for each in folders:
        if known is not None and each.name not in known:
            shutil.rmtree(each, ignore_errors=True)


def _segments(file: Path) -> set[str] | None:
    with (
        suppress(sqlite3.Error),  # a later version of Chroma may have another table
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        return {str(name) for (name,) in connection.execute("SELECT id FROM segments")}
    return None


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
