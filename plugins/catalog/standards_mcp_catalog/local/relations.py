"""The database table of the relations that records and crosswalks state."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from standards_mcp_catalog.records import StandardRecord, without_surrogates
from standards_mcp_catalog.relations import (
    Crosswalk,
    CrosswalkLinks,
    Link,
    StatedRelation,
    identifier_of,
    inverse,
    links_of,
)
from standards_mcp_catalog.vocabulary.notation import identifier_keys
from standards_mcp_catalog.vocabulary.relation_kinds import KINDS

from .sqlite import SqliteFile

if TYPE_CHECKING:
    from .database import Database

_MOST_RELATIONS: Final = 1_000
"""Most relations of one standard that are read in each direction."""
_OWN_KEYS: Final = (
    "WITH own AS (SELECT key FROM keys WHERE record_id IN (SELECT value FROM json_each(:ids)))"
)
_HAS_OWN_KEY: Final = "is_crosswalk = 1 AND (:ids IS NULL OR start IN own OR finish IN own)"


# Ends are keys of identifiers and not records, so that a relation counts as soon as its standard is
# loaded.
class RelationTable:
    """The relations in an open file.

    The relations of a record are replaced and deleted with the record. The relations of a crosswalk
    are replaced with the crosswalk, and each is deleted with either of its ends.
    """

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def keys_with_relations(self, keys: Collection[str], kinds: Collection[str]) -> set[str]:
        """Return the members of *keys* that are an end of a relation of these kinds."""
        rows = self._file.select(
            "WITH own AS (SELECT value FROM json_each(?)),"
            " wanted AS (SELECT value FROM json_each(?))"
            " SELECT start FROM relations WHERE start IN own AND kind IN wanted"
            " UNION SELECT finish FROM relations WHERE finish IN own AND kind IN wanted",
            (_json(keys), _json(_stored_kinds(kinds))),
        )
        return {str(key) for (key,) in rows}

    def relations_of(
        self, keys: Collection[str], kinds: Collection[str]
    ) -> list[tuple[str, str, str]]:
        """Return the relations of the record with these keys, in the order of kinds and keys.

        Each is its kind as seen from the record, the key of its other end, and its origin.
        """
        origins: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for own, other, is_inverse in (("start", "finish", False), ("finish", "start", True)):
            rows = self._file.select(
                f"SELECT kind, {other}, coalesce(crosswalks.title,"  # noqa: S608  names of columns
                " json_extract(body, '$.document_title'),"
                " json_extract(body, '$.standard_set_title'), stated_by) FROM relations"
                " LEFT JOIN crosswalks ON is_crosswalk AND crosswalks.id = stated_by"
                " LEFT JOIN records ON NOT is_crosswalk AND records.id = stated_by"
                f" WHERE {own} IN (SELECT value FROM json_each(?))"
                " AND kind IN (SELECT value FROM json_each(?)) ORDER BY kind, 2, 3 LIMIT ?",
                (_json(keys), _json(_stored_kinds(kinds)), _MOST_RELATIONS),
            )
            for kind, key, origin in rows:
                origins[inverse(kind) if is_inverse else kind, key][str(origin)] = None
        seen = [
            (kind, other, "; ".join(titles))
            for (kind, other), titles in origins.items()
            if kind in kinds and other not in keys
        ]
        return sorted(seen, key=lambda each: (KINDS.index(each[0]), *each[1:]))

    def crosswalks(self, ids: Iterable[str] | None = None) -> list[tuple[Crosswalk, int]]:
        """Return the crosswalks, sorted by title, each with its number of relations.

        Args:
            ids: Count only relations of these records.
        """
        rows = self._file.select(
            f"{_OWN_KEYS} SELECT id, title, count(*) FROM crosswalks JOIN relations"  # noqa: S608
            f" ON stated_by = id WHERE {_HAS_OWN_KEY} GROUP BY id ORDER BY title, id",
            {"ids": _json_or_none(ids)},
        )
        return [(Crosswalk(id_, title), int(count)) for id_, title, count in rows]

    def links(self, crosswalk_id: str, ids: Iterable[str] | None = None) -> list[Link]:
        """Return the relations of a crosswalk in order, optionally only for these records."""
        rows = self._file.select(
            f"{_OWN_KEYS} SELECT start, kind, finish FROM relations"  # noqa: S608  constants
            f" WHERE stated_by = :crosswalk AND {_HAS_OWN_KEY} ORDER BY 1, 2, 3",
            {"ids": _json_or_none(ids), "crosswalk": crosswalk_id},
        )
        return list(map(Link._make, rows))

    def replace_stated(self, records: Iterable[StandardRecord]) -> None:
        """Replace the relations that *records* state, inside a transaction."""
        rows = [(record.id, record.model_extra or {}) for record in records]
        self._file.run(
            "DELETE FROM relations WHERE is_crosswalk = 0 AND stated_by = ?",
            [(id_,) for id_, _ in rows],
        )
        self._add((0, id_, each) for id_, extra in rows for each in links_of(id_, extra))

    def delete_stated(self, rows: Sequence[tuple[str]]) -> None:
        """Delete the relations that these records state, or that crosswalks state about them.

        Call it inside a transaction, before the keys of the records are deleted.
        """
        self._file.run("DELETE FROM relations WHERE is_crosswalk = 0 AND stated_by = ?", rows)
        for end in ("start", "finish"):
            self._file.run(
                f"DELETE FROM relations INDEXED BY relations_by_{end}"  # noqa: S608  as above
                f" WHERE {end} IN (SELECT key FROM keys WHERE record_id = ?) AND is_crosswalk = 1",
                rows,
            )
        self._delete_empty_crosswalks()

    def add_crosswalk(self, stated: CrosswalkLinks) -> None:
        """Add or replace the relations of a crosswalk, inside a transaction."""
        crosswalk, links, adds = stated
        if not adds:
            self._remove(crosswalk.id)
        self._file.run("INSERT OR REPLACE INTO crosswalks VALUES (?, ?)", [crosswalk])
        self._add((1, crosswalk.id, each) for each in links)
        self._delete_empty_crosswalks()

    def remove_crosswalk(self, crosswalk_id: str) -> None:
        """Delete a crosswalk with its relations."""
        with self._file.transaction():
            self._remove(crosswalk_id)

    def _remove(self, crosswalk_id: str) -> None:
        row = [(crosswalk_id,)]
        self._file.run("DELETE FROM relations WHERE is_crosswalk = 1 AND stated_by = ?", row)
        self._file.run("DELETE FROM crosswalks WHERE id = ?", row)

    def _delete_empty_crosswalks(self) -> None:
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
    database: Database, records: Sequence[StandardRecord], kinds: Collection[str], limit: int
) -> list[tuple[StatedRelation, ...]]:
    """Return at most *limit* relations of each record, with the records at their other ends."""
    keys = [identifier_keys(record) for record in records]
    # Few records have relations, so one query finds them among all hits of a search.
    related = database.relations.keys_with_relations(frozenset[str]().union(*keys), kinds)
    return [
        _relations_of(database, record, own, kinds, limit) if own & related else ()
        for record, own in zip(records, keys, strict=True)
    ]


def _relations_of(
    database: Database,
    record: StandardRecord,
    keys: Collection[str],
    kinds: Collection[str],
    limit: int,
) -> tuple[StatedRelation, ...]:
    found: list[StatedRelation] = []
    for kind, key, origin in database.relations.relations_of(keys, kinds):
        others = [other for other in database.fetch(database.find([key])) if other.id != record.id]
        found += [
            StatedRelation(kind=kind, origin=origin, identifier=other.id, record=other)
            for other in others
        ] or [StatedRelation(kind=kind, origin=origin, identifier=identifier_of(key))]
        if len(found) >= limit:
            break
    return tuple(found[:limit])


def _stored_kinds(kinds: Collection[str]) -> list[str]:
    return sorted({*kinds, *map(inverse, kinds)})


def _json(values: Collection[str]) -> str:
    return json.dumps([without_surrogates(each) for each in values])


def _json_or_none(ids: Iterable[str] | None) -> str | None:
    return None if ids is None else _json(list(ids))
