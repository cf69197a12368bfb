"""What an import has read, before any of it is written: on disk, so that memory stays small."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, Literal, Self

from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.sets import memberships, merged

_SCHEMA = """
CREATE TABLE read (
    id TEXT NOT NULL, set_id TEXT NOT NULL, document INTEGER NOT NULL, selected INTEGER NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (id, set_id)
);
CREATE TABLE incomplete (document INTEGER PRIMARY KEY);
"""
_CACHE: Final = 32_768  # KB: the index of a million records, more or less
_PAGE: Final = 16_384  # bytes: records of some 700 are written in a third less time than at 4,096


class Staging:
    """The records of one import by id and set. It is a temporary file that only this process sees.

    A record that comes twice in one set stays as it came last.
    """

    def __init__(self) -> None:
        # The empty name is SQLite's own temporary database, which vanishes with the process.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._may_lack_any = False
        self._connection.executescript(
            f"PRAGMA page_size = {_PAGE}; PRAGMA journal_mode = OFF;"
            f" PRAGMA cache_size = -{_CACHE}; {_SCHEMA} BEGIN;"
        )

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
        row = (*key, document, selected, body)
        execute = self._connection.execute
        if execute("INSERT OR IGNORE INTO read VALUES (?, ?, ?, ?, ?)", row).rowcount:
            return "new"
        (before,) = execute("SELECT body FROM read WHERE (id, set_id) = (?, ?)", key).fetchone()
        execute("REPLACE INTO read VALUES (?, ?, ?, ?, ?)", row)
        return "same" if before == body else "other"

    def mark_incomplete(self, document: int | None) -> None:
        """Remember that a document has records that could not be read; None stands for any."""
        if document is None:
            self._may_lack_any = True
            return
        self._connection.execute("INSERT OR IGNORE INTO incomplete VALUES (?)", (document,))

    def jurisdictions(self) -> dict[str, str]:
        """Return the titles of the jurisdictions of the selected records, by their ids."""
        rows = self._connection.execute(
            "SELECT DISTINCT json_extract(body, '$.jurisdiction_id'),"
            " json_extract(body, '$.jurisdiction_title') FROM read WHERE selected"
        )
        return {str(id_): str(title) for id_, title in rows}

    def select_jurisdictions(self, ids: Iterable[str]) -> None:
        """Leave out what is of no jurisdiction with one of these ids."""
        self._connection.execute(
            "UPDATE read SET selected = 0 WHERE json_extract(body, '$.jurisdiction_id') NOT IN"
            " (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )

    def selected_sets(self) -> list[str]:
        """Return the ids of the sets of the selected records."""
        rows = self._connection.execute("SELECT DISTINCT set_id FROM read WHERE selected")
        return [str(id_) for (id_,) in rows]

    def keep_ancestors(self) -> None:
        """Let the ancestors of every selected record through as well."""
        self._connection.execute(
            "UPDATE read SET selected = 1 WHERE NOT selected AND id IN"
            " (SELECT value FROM read AS below, json_each(below.body, '$.ancestor_ids')"
            " WHERE below.selected)"
        )

    def counts(self) -> tuple[int, int, int]:
        """Return how many records are selected, how many distinct ids those have, and the rest."""
        row = self._connection.execute(
            "SELECT sum(selected), count(DISTINCT iif(selected, id, NULL)), sum(NOT selected)"
            " FROM read"
        ).fetchone()
        return int(row[0] or 0), int(row[1] or 0), int(row[2] or 0)

    def ids(self) -> Iterator[str]:
        """Yield the ids of the selected records, in their order."""
        rows = self._connection.execute("SELECT DISTINCT id FROM read WHERE selected ORDER BY id")
        return (str(id_) for (id_,) in rows)

    def fetch(self, ids: Iterable[str]) -> Iterator[StandardRecord]:
        """Yield one record for each of these selected ids."""
        statement = "SELECT body FROM read WHERE id = ? AND selected ORDER BY set_id"
        for id_ in ids:
            bodies = self._connection.execute(statement, (id_,))
            same = [StandardRecord.model_validate_json(body) for (body,) in bodies]
            yield merged(same) if len(same) > 1 else same[0]

    def complete_sets(self) -> tuple[set[str], set[str]]:
        """Return the sets that were read whole, and those of which something was skipped."""
        rows = self._connection.execute(
            "SELECT set_id, max(document IN (SELECT document FROM incomplete)) FROM read GROUP BY 1"
        )
        states = {str(set_id): bool(incomplete) for set_id, incomplete in rows}
        complete = {id_ for id_, lacks in states.items() if not (lacks or self._may_lack_any)}
        return complete, set(states) - complete

    def sets_of(self, id_: str) -> set[str]:
        """Return the sets in which a record was read, selected or not."""
        rows = self._connection.execute("SELECT body FROM read WHERE id = ?", (id_,))
        found = (StandardRecord.model_validate_json(body) for (body,) in rows)
        return {set_id for record in found for set_id in memberships(record)}
