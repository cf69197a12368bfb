"""The relations in the database: those that its records state, and those of crosswalks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import (
    FIELDS,
    Crosswalk,
    CrosswalkLinks,
    Link,
    StatedRelation,
    identifier_of,
    inverse,
    links_of,
    of_kinds,
)
from standards_mcp_catalog.texts import without_surrogates
from standards_mcp_catalog.vocabulary.notation import identifier_keys

from .sqlite import SqliteFile

if TYPE_CHECKING:
    from .database import Database

_MOST: Final = 1_000
"""How many relations of one standard are looked at."""
_OWN_KEYS: Final = (
    "WITH own AS (SELECT key FROM keys WHERE record_id IN (SELECT value FROM json_each(?)))"
)
_OF_OWN_KEYS: Final = "AND (start IN own OR finish IN own)"


class Seen(NamedTuple):
    """A relation as the end that was asked about sees it."""

    kind: str
    other: str
    origin: str


class RelationTable:
    """The relations in an open file.

    What a record states is replaced and goes with it. What a crosswalk states is replaced with the
    crosswalk, and goes with either end.
    """

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    @property
    def exist(self) -> bool:
        """Whether the file has them; one of an earlier version has none before `create`."""
        return self._file.has_relations()

    def create(self) -> None:
        """Give a file of an earlier version the relations that its records state.

        The caller holds the catalog's lock.
        """
        if self.exist:
            return
        marks = " OR ".join(f"instr(body, '\"{name}\"')" for name in FIELDS)
        with self._file.transaction():
            self._file.add_relations()
            statement = f"SELECT id, body FROM records WHERE {marks}"  # noqa: S608  constants
            with closing(self._file.stream(statement)) as rows:
                self._add(
                    (0, id_, each) for id_, body in rows for each in links_of(id_, json.loads(body))
                )

    def about(self, keys: Collection[str], kinds: Collection[str]) -> list[Seen]:
        """Return the relations of what has one of these keys, in the order of kinds and keys."""
        if not self.exist:
            return []
        stated = sorted({*kinds, *map(inverse, kinds)})
        found: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for own, other, turned in (("start", "finish", False), ("finish", "start", True)):
            rows = self._file.select(
                f"SELECT kind, {other}, coalesce(crosswalks.title,"  # noqa: S608  names of columns
                " json_extract(body, '$.document_title'),"
                " json_extract(body, '$.standard_set_title'), stated_by) FROM relations"
                " LEFT JOIN crosswalks ON is_crosswalk AND crosswalks.id = stated_by"
                " LEFT JOIN records ON NOT is_crosswalk AND records.id = stated_by"
                f" WHERE {own} IN (SELECT value FROM json_each(?))"
                " AND kind IN (SELECT value FROM json_each(?)) ORDER BY kind, 2, 3 LIMIT ?",
                (_json(keys), _json(stated), _MOST),
            )
            for kind, key, origin in rows:
                found[inverse(kind) if turned else kind, key][str(origin)] = None
        seen = [Seen(kind, other, "; ".join(said)) for (kind, other), said in found.items()]
        return [
            each
            for kind in of_kinds(kinds)
            for each in sorted(seen)
            if each.kind == kind and each.other not in keys
        ]

    def crosswalks(self) -> list[tuple[Crosswalk, int]]:
        """Return the crosswalks by their titles, each with its number of relations."""
        return self._counted("")

    def crosswalks_of(self, ids: Iterable[str]) -> list[tuple[Crosswalk, int]]:
        """Return the crosswalks of records, each with how many of its relations are of these."""
        return self._counted(_OWN_KEYS, _OF_OWN_KEYS, _json(list(ids)))

    def links(self, crosswalk_id: str, ids: Iterable[str] | None = None) -> list[Link]:
        """Return the relations of a crosswalk, in order; with *ids* only those of these records."""
        if not self.exist:
            return []
        first, which, values = "", "", [crosswalk_id]
        if ids is not None:
            first, which, values = _OWN_KEYS, _OF_OWN_KEYS, [_json(list(ids)), crosswalk_id]
        rows = self._file.select(
            f"{first} SELECT start, kind, finish FROM relations"  # noqa: S608  constants
            f" WHERE is_crosswalk = 1 AND stated_by = ? {which} ORDER BY 1, 2, 3",
            values,
        )
        return list(map(Link._make, rows))

    def _counted(self, first: str, which: str = "", *values: str) -> list[tuple[Crosswalk, int]]:
        if not self.exist:
            return []
        rows = self._file.select(
            f"{first} SELECT id, title, count(*) FROM crosswalks JOIN relations"  # noqa: S608  as above
            f" ON is_crosswalk = 1 AND stated_by = id {which} GROUP BY id ORDER BY title, id",
            values,
        )
        return [(Crosswalk(id_, title), int(count)) for id_, title, count in rows]

    def restate(self, records: Iterable[StandardRecord]) -> None:
        """Take what *records* state, in place of what they stated before, in a transaction."""
        rows = [(record.id, record.model_extra or {}) for record in records]
        self._file.run(
            "DELETE FROM relations WHERE is_crosswalk = 0 AND stated_by = ?",
            [(id_,) for id_, _ in rows],
        )
        self._add((0, id_, each) for id_, extra in rows for each in links_of(id_, extra))

    def forget(self, rows: Sequence[tuple[str]]) -> None:
        """Delete what the records with these ids state, and what crosswalks say of them.

        It is in a transaction, and the keys of the records are there still.
        """
        self._file.run("DELETE FROM relations WHERE is_crosswalk = 0 AND stated_by = ?", rows)
        for end in ("start", "finish"):
            self._file.run(
                f"DELETE FROM relations INDEXED BY relations_by_{end}"  # noqa: S608  as above
                f" WHERE {end} IN (SELECT key FROM keys WHERE record_id = ?) AND is_crosswalk = 1",
                rows,
            )
        self._drop_empty()

    def state(self, stated: CrosswalkLinks) -> None:
        """Store the relations of a crosswalk, in a transaction."""
        crosswalk, links, adds = stated
        if not adds:
            self._remove(crosswalk.id)
        self._file.run("INSERT OR REPLACE INTO crosswalks VALUES (?, ?)", [crosswalk])
        self._add((1, crosswalk.id, each) for each in links)
        self._drop_empty()

    def remove(self, crosswalk_id: str) -> None:
        """Delete a crosswalk and all that it states."""
        with self._file.transaction():
            self._remove(crosswalk_id)

    def _remove(self, crosswalk_id: str) -> None:
        row = [(crosswalk_id,)]
        self._file.run("DELETE FROM relations WHERE is_crosswalk = 1 AND stated_by = ?", row)
        self._file.run("DELETE FROM crosswalks WHERE id = ?", row)

    def _drop_empty(self) -> None:
        self._file.run(
            "DELETE FROM crosswalks WHERE NOT EXISTS"
            " (SELECT 1 FROM relations WHERE is_crosswalk = 1 AND stated_by = crosswalks.id)"
        )

    def _add(self, stated: Iterable[tuple[int, str, Link]]) -> None:
        rows = (
            (is_crosswalk, stated_by, *map(without_surrogates, each))
            for is_crosswalk, stated_by, each in stated
        )
        self._file.run("INSERT OR IGNORE INTO relations VALUES (?, ?, ?, ?, ?)", rows)


def stated_relations(
    database: Database, record: StandardRecord, kinds: Collection[str], limit: int
) -> tuple[StatedRelation, ...]:
    """Return at most *limit* relations of *record*, with the records at their other ends."""
    found: list[StatedRelation] = []
    for kind, key, origin in database.relations.about(identifier_keys(record), kinds):
        others = [each for each in database.fetch(database.find([key])) if each.id != record.id]
        found += [
            StatedRelation(kind=kind, origin=origin, identifier=each.id, record=each)
            for each in others
        ] or [StatedRelation(kind=kind, origin=origin, identifier=identifier_of(key))]
        if len(found) >= limit:
            break
    return tuple(found[:limit])


def _json(values: Collection[str]) -> str:
    return json.dumps([without_surrogates(each) for each in values])
