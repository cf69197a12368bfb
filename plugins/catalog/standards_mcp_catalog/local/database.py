"""The database of the embedded store: one SQLite file, from which the index is derived.

The file has the records as JSON, their sets, the canonical keys that find them, and the vectors of
their texts. Vectors are kept by model and text, so that no text is embedded twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from standards_mcp_catalog.records import StandardRecord, chunks, text_hash, without_surrogates
from standards_mcp_catalog.relations import CrosswalkLinks
from standards_mcp_catalog.sets import GivenNames, StandardSet, memberships, with_names
from standards_mcp_catalog.vocabulary.notation import record_keys

from .relations import RelationTable
from .sqlite import SqliteFile

_GIVEN_NAMES = "given names"
_CHUNK = 500  # ids in one statement; SQLite allowed 999 variables for a long time

# SQLite answers this from the index records_by_set; the table is forty times as large.
_WITH_TALLIES = (
    "WITH tallies AS (SELECT set_id, subject, education_levels, count(*) AS records"
    " FROM records GROUP BY 1, 2, 3)"
)


class Row(NamedTuple):
    """The columns of a record from which the index is built.

    Attributes:
        vector: Vector of the description, little-endian float32; None before embedding.
    """

    id: str
    parent_id: str | None
    description: str
    body: str
    vector: bytes | None


class Database(SqliteFile):
    """The open database of a catalog. One object may be shared by threads.

    Args:
        path: A file that `sqlite.create_database` has created.

    Raises:
        CatalogUnavailableError: The file is not a catalog, is damaged, or cannot be opened; any
            other method may raise it too.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.relations = RelationTable(self)

    # -- records

    @property
    def revision(self) -> int:
        """A number that grows with every change of the records."""
        return int(self.meta("revision", "0"))

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes with the records, also when others take their place with a revision.

        The second number is SQLite's own, which grows when another connection writes.
        """
        return self.revision, int(self.select("PRAGMA data_version")[0][0])

    @property
    def changed_at(self) -> datetime | None:
        """Time of the last change of records; None if an early version wrote them."""
        written = self.meta("changed", "")
        return datetime.fromisoformat(written) if written else None

    def meta(self, key: str, default: str) -> str:
        """Return the value that `set_meta` saved under *key*."""
        rows = self.select("SELECT value FROM state WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else default

    def set_meta(self, key: str, value: str) -> None:
        """Save *value* under *key* in the table `state`."""
        with self.transaction():
            self.run("INSERT OR REPLACE INTO state VALUES (?, ?)", [(key, value)])

    def write(
        self,
        records: Iterable[StandardRecord],
        deleted: Iterable[str],
        crosswalks: Iterable[CrosswalkLinks] = (),
        names: GivenNames | None = None,
    ) -> int:
        """Add, replace and delete in one transaction; return the number of changes.

        Args:
            names: New names of sets, see `given_names`.
        """
        with self.transaction():
            changed = sum(self._upsert(chunk) for chunk in chunks(records, _CHUNK))
            changed += sum(self._delete(chunk) for chunk in chunks(deleted, _CHUNK))
            for each in crosswalks:
                self.relations.add_crosswalk(each)
            self.run("DELETE FROM sets WHERE id NOT IN (SELECT set_id FROM records)")
            state = self._given_names_state(names or {})
            if changed:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                state |= {"revision": str(self.revision + 1), "changed": now}
            self.run("INSERT OR REPLACE INTO state VALUES (?, ?)", state.items())
        return changed

    def given_names(self) -> GivenNames:
        """Return the names that users gave to stored sets; names of other sets are forgotten."""
        names: GivenNames = json.loads(self.meta(_GIVEN_NAMES, "{}"))
        return names

    def records(self, set_ids: Collection[str] | None = None) -> Iterator[StandardRecord]:
        """Yield the records of these sets, of all by default, in the order of their ids."""
        if set_ids is None:
            rows = self.select("SELECT id FROM records ORDER BY id")
        else:
            rows = self.select(
                "WITH wanted AS (SELECT value AS id FROM json_each(?))"
                " SELECT id FROM records WHERE set_id IN wanted UNION SELECT record_id FROM keys"
                " WHERE key IN (SELECT 'set:' || id FROM wanted) ORDER BY 1",
                (json.dumps(list(set_ids)),),
            )
        for chunk in chunks((str(row[0]) for row in rows), _CHUNK):
            yield from self.fetch(chunk)

    def sets(self) -> list[StandardSet]:
        """Return every standard set, in the order of jurisdiction, subject and title."""
        rows = self.select(
            "SELECT sets.id, title, sets.subject, jurisdiction_id, jurisdiction_title, license,"
            " source_url, count(*) FROM sets JOIN records ON set_id = sets.id GROUP BY sets.id"
            " ORDER BY jurisdiction_title, sets.subject, title, sets.id"
        )
        names = [each.name for each in fields(StandardSet)]
        return [StandardSet(**dict(zip(names, row, strict=True))) for row in rows]

    def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""
        bodies: dict[str, str] = {}
        for chunk in chunks(ids, _CHUNK):
            bodies.update(self._bodies(chunk))
        return [StandardRecord.model_validate_json(bodies[id_]) for id_ in ids if id_ in bodies]

    def fingerprints(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the `fingerprint` of each record with one of these ids, as it is stored."""
        return {
            id_: _hash(body)
            for chunk in chunks(ids, _CHUNK)
            for id_, body in self._bodies(chunk).items()
        }

    def count(self) -> int:
        """Return the number of records."""
        return int(self.select("SELECT count(*) FROM records")[0][0])

    def rows(self, model: str | None) -> Iterator[Row]:
        """Return every record in the order of the ids, with the vector that *model* made."""
        statement = (
            "SELECT id, parent_id, description, body, vector FROM records LEFT JOIN embeddings"
            " ON embeddings.text_hash = records.text_hash AND model = ? ORDER BY id"
        )
        return map(Row._make, self.stream(statement, (model,)))

    # -- keys

    def find(self, keys: Iterable[str]) -> list[str]:
        """Return the ids of the records that have one of *keys*, in the order of the keys."""
        found: dict[str, None] = {}
        for key in keys:
            statement = "SELECT record_id FROM keys WHERE key = ? ORDER BY record_id"
            rows = self.select(statement, (without_surrogates(key),))
            found.update((str(row[0]), None) for row in rows)
        return list(found)

    def keys(self, prefix: str) -> list[str]:
        """Return the distinct keys that begin with *prefix*, without that prefix."""
        rows = self.select(
            "SELECT DISTINCT substr(key, ?) FROM keys WHERE key >= ? AND key < ?",
            (len(prefix) + 1, prefix, prefix + "\U0010ffff"),
        )
        return [str(row[0]) for row in rows]

    # -- vectors

    def texts_without_vector(self, model: str) -> list[tuple[str, str]]:
        """Return (hash, text) of the distinct texts that *model* has not embedded."""
        rows = self.select(
            "SELECT text_hash, min(description) FROM records WHERE text_hash IS NOT NULL"
            " AND text_hash NOT IN (SELECT text_hash FROM embeddings WHERE model = ?)"
            " GROUP BY text_hash ORDER BY text_hash",
            (model,),
        )
        return [(str(hash_), str(text)) for hash_, text in rows]

    def add_vectors(self, model: str, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Save vectors, little-endian float32, by text hash."""
        with self.transaction():
            self.run(
                "INSERT OR IGNORE INTO embeddings (model, text_hash, vector) VALUES (?, ?, ?)",
                [(model, hash_, vector) for hash_, vector in vectors],
            )

    def remove_unused_vectors(self) -> None:
        """Delete the vectors of texts that no record has any more."""
        with self.transaction():
            self.run(
                "DELETE FROM embeddings WHERE text_hash NOT IN"
                " (SELECT text_hash FROM records WHERE text_hash IS NOT NULL)"
            )

    # -- overview

    def counts(self, column: str) -> dict[str, int]:
        """Return the values of a column of `sets` or `records`, each with its number of records."""
        of_sets = "FROM tallies JOIN sets ON sets.id = set_id GROUP BY 1"
        statement = {
            "subject": "SELECT subject, sum(records) FROM tallies GROUP BY 1",
            "education_level": "SELECT value, sum(records)"
            " FROM tallies, json_each(education_levels) GROUP BY 1",
            "jurisdiction": f"SELECT jurisdiction_title, sum(records) {of_sets}",
            "standard_set": f"SELECT title, sum(records) {of_sets}",
            "license": f"SELECT coalesce(license, 'not stated'), sum(records) {of_sets}",
        }[column]
        rows = self.select(f"{_WITH_TALLIES} {statement}")
        return {str(value): int(number) for value, number in rows}

    # -- helpers

    def _upsert(self, records: Sequence[StandardRecord]) -> int:
        latest = {record.id: record for record in records}
        bodies = {id_: _body(record) for id_, record in latest.items()}
        known = self._bodies(list(bodies))
        changed = [latest[id_] for id_, body in bodies.items() if known.get(id_) != body]
        self._write(changed, bodies)
        return len(changed)

    def _delete(self, ids: Sequence[str]) -> int:
        rows = [(id_,) for id_ in self._bodies(ids)]
        self.relations.delete_stated(rows)
        self.run("DELETE FROM keys WHERE record_id = ?", rows)
        self.run("DELETE FROM records WHERE id = ?", rows)
        return len(rows)

    def _write(self, records: Sequence[StandardRecord], bodies: dict[str, str]) -> None:
        self.run(
            "INSERT OR REPLACE INTO sets VALUES (?, ?, ?, ?, ?, ?, ?)",
            list({record.standard_set_id: _set_row(record) for record in records}.values()),
        )
        self.run(
            "INSERT INTO records (id, set_id, parent_id, subject, education_levels, description,"
            " text_hash, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " set_id = excluded.set_id, parent_id = excluded.parent_id,"
            " subject = excluded.subject, education_levels = excluded.education_levels,"
            " description = excluded.description, text_hash = excluded.text_hash,"
            " body = excluded.body",
            [_record_row(record, bodies[record.id]) for record in records],
        )
        self.relations.replace_stated(records)
        self.run("DELETE FROM keys WHERE record_id = ?", [(record.id,) for record in records])
        self.run(
            "INSERT OR IGNORE INTO keys VALUES (?, ?)",
            [(key, record.id) for record in records for key in _keys(record)],
        )

    def _given_names_state(self, names: GivenNames) -> dict[str, str]:
        """Return the value for `given_names`: the earlier and new *names* of stored sets."""
        earlier = self.given_names()
        if not (earlier or names):
            return {}
        rows = self.select(
            "SELECT id FROM sets UNION"
            " SELECT substr(key, 5) FROM keys WHERE key >= 'set:' AND key < 'set;'"
        )
        stored = {str(id_) for (id_,) in rows}
        kept = {id_: each for id_, each in with_names(earlier, names).items() if id_ in stored}
        return {_GIVEN_NAMES: json.dumps(kept)}

    def _bodies(self, ids: Sequence[str]) -> dict[str, str]:
        # Stored ids have no surrogates, and SQLite cannot encode them.
        ids = [id_ for id_ in ids if without_surrogates(id_) == id_]
        marks = ", ".join("?" * len(ids))
        return dict(
            self.select(f"SELECT id, body FROM records WHERE id IN ({marks})", ids)  # noqa: S608
        )


def fingerprint(record: StandardRecord) -> str:
    """Return a hash of *record* as a database stores it."""
    return _hash(_body(record))


def _hash(body: str) -> str:
    return blake2b(body.encode(), digest_size=8).hexdigest()


def _body(record: StandardRecord) -> str:
    return without_surrogates(json.dumps(record.to_dict(), ensure_ascii=False))


def _set_row(record: StandardRecord) -> tuple[str | None, ...]:
    *values, _ = astuple(StandardSet.of(record))
    return tuple(map(_storable, values))


def _record_row(record: StandardRecord, body: str) -> tuple[Any, ...]:
    description = without_surrogates(record.description)
    return (
        record.id, _storable(record.standard_set_id), _storable(record.parent_id),
        _storable(record.subject), json.dumps(record.education_levels), description,
        text_hash(description) if description.strip() else None, body,
    )  # fmt: skip


def _keys(record: StandardRecord) -> list[str]:
    """Return the keys that find *record*: its codes, and the other sets that it is in."""
    others = (id_ for id_ in memberships(record) if id_ != record.standard_set_id)
    return list(map(without_surrogates, (*record_keys(record), *(f"set:{id_}" for id_ in others))))


def _storable(value: str | None) -> str | None:
    return None if value is None else without_surrogates(value)
