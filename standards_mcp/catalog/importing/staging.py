"""What an import has read, before any of it is written: on disk, so that memory stays small."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import Literal, Self

from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.sets import memberships, merged

_SCHEMA = """
CREATE TABLE read (
    id TEXT NOT NULL, set_id TEXT NOT NULL, document INTEGER NOT NULL, selected INTEGER NOT NULL,
    ancestors TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (id, set_id)
) WITHOUT ROWID;
CREATE TABLE incomplete (document INTEGER PRIMARY KEY);
"""


class Staging:
    """The records of one import by id and set. It is a temporary file that only this process sees.

    A record that comes twice in one set stays as it came last.
    """

    def __init__(self) -> None:
        # The empty name is SQLite's own temporary database, which vanishes with the process.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._connection.executescript(f"PRAGMA journal_mode = OFF; {_SCHEMA} BEGIN;")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(
        self, record: StandardRecord, document: int, *, selected: bool
    ) -> Literal["new", "same", "other"]:
        """Keep *record*; return whether its set had none, the same or another under its id.

        Args:
            selected: Whether the filters let it through.
        """
        key = record.id, record.standard_set_id
        body = record.model_dump_json(by_alias=True, exclude_none=True)
        statement = "SELECT body FROM read WHERE (id, set_id) = (?, ?)"
        before = self._connection.execute(statement, key).fetchone()
        self._connection.execute(
            "INSERT OR REPLACE INTO read VALUES (?, ?, ?, ?, ?, ?)",
            (*key, document, selected, json.dumps(record.ancestor_ids), body),
        )
        if before is None:
            return "new"
        return "same" if before[0] == body else "other"

    def mark_incomplete(self, document: int) -> None:
        """Remember that a document has records that could not be read."""
        self._connection.execute("INSERT OR IGNORE INTO incomplete VALUES (?)", (document,))

    def keep_ancestors(self) -> None:
        """Let the ancestors of every selected record through as well."""
        self._connection.execute(
            "UPDATE read SET selected = 1 WHERE NOT selected AND id IN"
            " (SELECT value FROM read AS below, json_each(below.ancestors) WHERE below.selected)"
        )

    def counts(self) -> tuple[int, int, int]:
        """Return how many records are selected, how many distinct ids those have, and the rest."""
        row = self._connection.execute(
            "SELECT sum(selected), count(DISTINCT iif(selected, id, NULL)), sum(NOT selected)"
            " FROM read"
        ).fetchone()
        return int(row[0] or 0), int(row[1] or 0), int(row[2] or 0)

    def records(self) -> Iterator[StandardRecord]:
        """Yield one record for each selected id, in the order of the ids."""
        statement = "SELECT id, body FROM read WHERE selected ORDER BY id, set_id"
        rows = self._connection.execute(statement)
        for _, group in groupby(rows, key=lambda row: str(row[0])):
            same = [StandardRecord.model_validate_json(body) for _, body in group]
            yield merged(same) if len(same) > 1 else same[0]

    def complete_sets(self) -> tuple[set[str], set[str]]:
        """Return the sets that were read whole, and those of which something was skipped."""
        rows = self._connection.execute(
            "SELECT set_id, max(document IN (SELECT document FROM incomplete)) FROM read GROUP BY 1"
        )
        states = {str(set_id): bool(incomplete) for set_id, incomplete in rows}
        complete = {set_id for set_id, incomplete in states.items() if not incomplete}
        return complete, set(states) - complete

    def sets_of(self, id_: str) -> set[str]:
        """Return the sets in which a record was read, selected or not."""
        rows = self._connection.execute("SELECT body FROM read WHERE id = ?", (id_,))
        found = (StandardRecord.model_validate_json(body) for (body,) in rows)
        return {set_id for record in found for set_id in memberships(record)}
