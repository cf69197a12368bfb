"""Keep the items of an import in a temporary database until all are read.

The statements of crosswalks are then resolved to links between standards.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from standards_mcp.files import full_disk
from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.records import StandardRecord, without_surrogates
from standards_mcp_catalog.relations import (
    Crosswalk,
    CrosswalkLinks,
    Link,
    link,
    links_of,
    parse_kind,
    stated_in,
)
from standards_mcp_catalog.sets import memberships, merged
from standards_mcp_catalog.vocabulary.names import jurisdictions_named
from standards_mcp_catalog.vocabulary.notation import identifier_key, record_keys, spelled_keys
from standards_mcp_catalog.vocabulary.readings import codes_of_places
from standards_mcp_catalog.vocabulary.relation_kinds import KINDS

from .report import Problem, Statement, lost

if TYPE_CHECKING:
    from standards_mcp_catalog.local.store import LocalStore

_LOOKUPS_CACHED: Final = 10_000
_IDS_SHOWN: Final = 5

_SCHEMA = """
CREATE TABLE read (
    id TEXT NOT NULL, set_id TEXT NOT NULL, document INTEGER NOT NULL, selected INTEGER NOT NULL,
    has_links INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, set_id)
);
CREATE TABLE incomplete (document INTEGER);
CREATE TABLE statements (number INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE crosswalks (id TEXT PRIMARY KEY, title TEXT NOT NULL, adds INTEGER NOT NULL);
CREATE TABLE links (
    crosswalk TEXT, start TEXT, kind TEXT, finish TEXT, PRIMARY KEY (crosswalk, start, kind, finish)
) WITHOUT ROWID;
CREATE TABLE keys (key TEXT, id TEXT, PRIMARY KEY (key, id)) WITHOUT ROWID;
"""
_NO_CROSSWALK: Final = ""
"""In place of a crosswalk's id, for the links that records state themselves."""
_CACHE_KB: Final = 32_768  # about the index of a million records
_PAGE_BYTES: Final = 16_384  # writing takes a third less time than with pages of 4,096


class Staging:
    """The items of one import, in a temporary file that only this process sees.

    Records are kept by id and set; if one occurs twice in a set, the last counts.
    """

    def __init__(self) -> None:
        # The empty name is SQLite's own temporary database, which vanishes with the process.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._has_unselected = False
        self._connection.executescript(
            f"PRAGMA page_size = {_PAGE_BYTES}; PRAGMA journal_mode = OFF;"
            f" PRAGMA cache_size = -{_CACHE_KB}; {_SCHEMA} BEGIN;"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._connection.close()
        if isinstance(error, sqlite3.Error) and full_disk.is_full(error):
            reason = f"{full_disk.MESSAGE}, or set TMPDIR to a folder on another disk"
            raise CatalogError(f"the import cannot write its temporary file: {reason}") from error

    def add(
        self, record: StandardRecord, document: int, *, selected: bool
    ) -> Literal["new", "same", "other"]:
        """Stage *record*; return "new", or how it compares with the last one of its id and set.

        Args:
            selected: True if it passes the filters.
        """
        key = record.id, record.standard_set_id
        body = record.model_dump_json(by_alias=True, exclude_none=True)
        row = (*key, document, selected, any(stated_in(record.model_extra or {})), body)
        self._has_unselected |= not selected
        execute = self._connection.execute
        if execute("INSERT OR IGNORE INTO read VALUES (?, ?, ?, ?, ?, ?)", row).rowcount:
            return "new"
        (before,) = execute("SELECT body FROM read WHERE (id, set_id) = (?, ?)", key).fetchone()
        execute("REPLACE INTO read VALUES (?, ?, ?, ?, ?, ?)", row)
        return "same" if before == body else "other"

    def add_statement(self, statement: Statement) -> None:
        """Stage a statement, to be resolved when all records are read."""
        body = without_surrogates(json.dumps(asdict(statement), ensure_ascii=False))
        self._connection.execute("INSERT INTO statements VALUES (NULL, ?)", (body,))

    def add_crosswalk(self, crosswalk: Crosswalk, *, adds: bool = False) -> None:
        """Stage a crosswalk; `add_link` adds its relations."""
        self._connection.execute(
            "INSERT INTO crosswalks VALUES (?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET adds = adds AND excluded.adds",
            (*map(without_surrogates, crosswalk), adds),
        )

    def statements(self) -> Iterator[Statement]:
        """Yield the statements of crosswalks in their order."""
        for (body,) in self._connection.execute("SELECT body FROM statements ORDER BY number"):
            fields: dict[str, Any] = json.loads(body)
            fields["crosswalk"] = Crosswalk(*fields["crosswalk"])
            yield Statement(**fields)

    def index_keys(self) -> None:
        """Index the selected records for `ids_by_key`, if any statement has codes."""
        if all(each.by_identifier for each in self.statements()):
            return
        for record in self.fetch(self.ids()):
            rows = [(without_surrogates(key), record.id) for key in record_keys(record)]
            self._connection.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", rows)

    def ids_by_key(self, key: str) -> list[str]:
        """Return the ids of the selected records with a key, see `index_keys`."""
        rows = self._connection.execute("SELECT id FROM keys WHERE key = ?", (key,))
        return [str(id_) for (id_,) in rows]

    def add_link(self, crosswalk: Crosswalk, link: Link, *, adds: bool = False) -> None:
        """Stage a link that a crosswalk states."""
        self.add_crosswalk(crosswalk, adds=adds)
        self._insert_link(crosswalk.id, link)

    def count_links(self) -> int:
        """Add the links that the selected records state, and return the number of all links."""
        rows = self._connection.execute("SELECT DISTINCT id FROM read WHERE selected AND has_links")
        for record in self.fetch(str(id_) for (id_,) in rows):
            for stated in links_of(record.id, record.model_extra or {}):
                self._insert_link(_NO_CROSSWALK, stated)
        return int(self._connection.execute("SELECT count(*) FROM links").fetchone()[0])

    def crosswalks(self) -> Iterator[CrosswalkLinks]:
        """Yield the crosswalks, each with its links."""
        rows = self._connection.execute("SELECT id, title, adds FROM crosswalks ORDER BY id")
        for id_, title, adds in rows:
            found = self._connection.execute(
                "SELECT start, kind, finish FROM links WHERE crosswalk = ?", (id_,)
            )
            yield CrosswalkLinks(Crosswalk(id_, title), map(Link._make, found), bool(adds))

    def _insert_link(self, crosswalk_id: str, link: Link) -> None:
        row = (crosswalk_id, *map(without_surrogates, link))
        self._connection.execute("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", row)

    def mark_incomplete(self, document: int | None) -> None:
        """Mark the sets of a document as incomplete; None marks all sets."""
        self._connection.execute("INSERT INTO incomplete VALUES (?)", (document,))

    def jurisdictions(self) -> dict[str, str]:
        """Return the jurisdictions of all records that were read: titles by ids."""
        rows = self._connection.execute(
            "SELECT DISTINCT json_extract(body, '$.jurisdiction_id'),"
            " json_extract(body, '$.jurisdiction_title') FROM read"
        )
        return {str(id_): str(title) for id_, title in rows}

    def select_jurisdictions(self, ids: Iterable[str]) -> None:
        """Deselect the records of other jurisdictions."""
        self._has_unselected = True
        self._connection.execute(
            "UPDATE read SET selected = 0 WHERE json_extract(body, '$.jurisdiction_id') NOT IN"
            " (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )

    def selected_sets(self) -> dict[str, tuple[str, str]]:
        """Return the sets of the selected records by id: their titles and jurisdictions' titles."""
        rows = self._connection.execute(
            "SELECT set_id, coalesce(json_extract(body, '$.set_title'),"
            " json_extract(body, '$.standard_set_title')),"
            " json_extract(body, '$.jurisdiction_title') FROM read WHERE selected GROUP BY set_id"
        )
        return {str(id_): (str(title), str(jurisdiction)) for id_, title, jurisdiction in rows}

    def is_selected(self, id_: str) -> bool:
        """Return whether a selected record has this id."""
        statement = "SELECT 1 FROM read WHERE id = ? AND selected"
        return self._connection.execute(statement, (id_,)).fetchone() is not None

    def select_ancestors(self) -> None:
        """Select the ancestors of the selected records, too."""
        if not self._has_unselected:
            return
        self._connection.execute(
            "UPDATE read SET selected = 1 WHERE NOT selected AND id IN"
            " (SELECT value FROM read AS below, json_each(below.body, '$.ancestor_ids')"
            " WHERE below.selected)"
        )

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of selected records, of their distinct ids, and of other records."""
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
        """Yield one record for each of *ids*, merged from all sets; each must be selected."""
        statement = "SELECT body FROM read WHERE id = ? AND selected ORDER BY set_id"
        for id_ in ids:
            bodies = self._connection.execute(statement, (id_,))
            same = [StandardRecord.model_validate_json(body) for (body,) in bodies]
            yield merged(same) if len(same) > 1 else same[0]

    def complete_sets(self) -> tuple[set[str], set[str]]:
        """Return the ids of the complete sets, and of the sets with skipped records."""
        # With NULL in the list, IN is never 0: true for its members, NULL for all others.
        rows = self._connection.execute(
            "SELECT set_id, max(coalesce(document IN (SELECT document FROM incomplete), 1))"
            " FROM read GROUP BY 1"
        )
        states = {str(set_id): bool(incomplete) for set_id, incomplete in rows}
        complete = {id_ for id_, is_incomplete in states.items() if not is_incomplete}
        return complete, set(states) - complete

    def sets_of(self, id_: str) -> set[str]:
        """Return the sets of a record that was read, selected or not."""
        rows = self._connection.execute("SELECT body FROM read WHERE id = ?", (id_,))
        found = (StandardRecord.model_validate_json(body) for (body,) in rows)
        return {set_id for record in found for set_id in memberships(record)}


def resolve_statements(
    staging: Staging, store: LocalStore, deleted: Collection[str] = ()
) -> Iterator[Problem]:
    """Resolve the statements in *staging* to links between standards, and stage these.

    Args:
        deleted: The ids of standards in *store* that the import deletes; no code refers to them.

    Yields:
        A problem for each statement that cannot be resolved, such as one with a code that several
        standards have.

    Raises:
        CatalogError: The store cannot be read.
    """
    staging.index_keys()
    find = lru_cache(_LOOKUPS_CACHED)(_CodeLookup(staging, store, deleted).find)
    for statement in staging.statements():
        result = _resolve(statement, find)
        if isinstance(result, Problem):
            yield result
        else:
            staging.add_link(statement.crosswalk, result, adds=statement.adds)


class _CodeLookup:
    """Find standards by code or id, in the import and in the store."""

    def __init__(self, staging: Staging, store: LocalStore, deleted: Collection[str]) -> None:
        self._staging, self._store, self._deleted = staging, store, deleted

    def find(self, text: str) -> list[str]:
        """Return the ids of the standards with this code or id; a place may precede the code."""
        staging = self._staging
        if found := self._find_spelling(text):
            return found
        for reading in codes_of_places(text):
            ids = self._find_spelling(reading.code)
            records = (*self._store.fetch(ids), *staging.fetch(filter(staging.is_selected, ids)))
            titles = {each.id: each.jurisdiction_title for each in records}
            fitting = {
                title
                for place in reading.places
                for title in jurisdictions_named(place, {*titles.values()})
            }
            if found := [id_ for id_ in ids if titles[id_] in fitting]:
                return found
        return []

    def _find_spelling(self, text: str) -> list[str]:
        for key in spelled_keys(text):
            found = {*self._store.database.find([key]), *self._staging.ids_by_key(key)}
            if found := found.difference(self._deleted):
                return sorted(found)
        return []


def _resolve(statement: Statement, find: Callable[[str], Sequence[str]]) -> Link | Problem:
    kind = parse_kind(statement.relation)
    if kind is None:
        detail = f"{statement.relation[:80]!r}; use one of {', '.join(KINDS)}"
        return _lost(statement, "unknown relation", detail)
    ends = [statement.start, statement.end]
    if not statement.by_identifier:
        for each in ends:
            if len(found := find(each)) != 1:
                return _not_one(statement, each, found)
        ends = [find(each)[0] for each in ends]
    start, end = (identifier_key(each) or "" for each in ends)
    if start == end:
        return _lost(statement, "related to itself", repr(statement.start[:80]))
    return link(start, kind, end)


def _not_one(statement: Statement, text: str, ids: Sequence[str]) -> Problem:
    if not text:
        return _lost(statement, "code missing", "a row has two codes or ids and a relation")
    if not ids:
        detail = f"{text[:80]!r} is not loaded; import its standards first"
        return _lost(statement, "unknown code", detail)
    shown = ", ".join(ids[:_IDS_SHOWN]) + (", ..." if len(ids) > _IDS_SHOWN else "")
    detail = f"{len(ids)} standards have {text[:80]!r}; give one of their ids: {shown}"
    return _lost(statement, "ambiguous code", detail)


def _lost(statement: Statement, reason: str, detail: str) -> Problem:
    return lost(reason, statement.source, statement.where, detail, records=0)
