"""Deletions that an embedded store has not finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def finish_deletions(folder: Path) -> None:
    """Forget collections whose files are gone, since their deletion was ended by a kill.

    The client deletes the files first, and when it opens makes them anew, empty. Then nobody could
    tell such a collection from one that was emptied on purpose.

    Raises:
        Exception: The list of collections is damaged; nearly any may be raised.
    """
    file = folder / "meta.json"
    if not file.exists():
        return
    known: dict[str, Any] = json.loads(file.read_text("utf-8"))
    gone = {name for name in known["collections"] if _is_gone(folder / "collection" / name)}
    if not gone:
        return
    aliases = {alias: name for alias, name in known["aliases"].items() if name not in gone}
    tables = {
        key: {name: value for name, value in known.get(key, {}).items() if name not in gone}
        for key in ("collections", "text_indexes")
    }
    written = file.with_suffix(".tmp")
    written.write_text(json.dumps({**known, **tables, "aliases": aliases}), "utf-8")
    written.replace(file)


def _is_gone(collection: Path) -> bool:
    # The database of an older client has another name; what SQLite writes beside one says nothing.
    return all(each.name.startswith("storage.sqlite-") for each in collection.glob("*"))
