"""Read and write the records of all tables, by one description of each table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar, cast

from .database import Connection
from .primitives import compact_json
from .records import (
    Atom,
    Entry,
    Event,
    Interaction,
    Opportunity,
    Requirement,
    Resume,
    Run,
    StoredDecision,
)

_R = TypeVar("_R")
_ROOM_FOR_WRITERS: Final = 1000
ALL_ROWS: Final = 2**63 - 1
"""The largest limit of a query."""
NEWEST_RUN_FIRST: Final = "length(run_id) DESC, run_id DESC"
"""Orders runs by the number in their id, and not by time: clocks may go back."""


class _Table(NamedTuple):
    name: str
    key: str
    order: str
    join: str = ""


_TABLES: Final[Mapping[type, _Table]] = {
    Atom: _Table("atoms", "atom_id", "atom_id"),
    Requirement: _Table("requirements", "opportunity_id", "idx"),
    Opportunity: _Table("opportunities", "opportunity_id", "opportunity_id"),
    Interaction: _Table("interactions", "interaction_id", "interaction_id"),
    Resume: _Table("resumes", "resume_id", "resume_id", "LEFT JOIN resume_meta USING (resume_id)"),
    Run: _Table("index_runs", "run_id", "length(run_id), run_id"),
    Entry: _Table("index_entries", "run_id", "artifact_type, artifact_id"),
    StoredDecision: _Table("decision_records", "decision_id", "number"),
    Event: _Table("audit_events", "trace_id", "trace_id, idx"),
}
_COLUMNS: Final = {
    "markdown": "resume_md",
    "tags": "tags_json",
    "evidence_refs": "evidence_refs_json",
    "summary": "summary_json",
    "decision": "decision_json",
    "refs": "entity_ids_json",
}
"""The columns whose fields have other names. Queries name all columns, because files of the
original program may have them in another order."""


def parse_texts(stored: object) -> tuple[str, ...]:
    """Parse a stored JSON list of texts. Other content, from other programs, becomes one text."""
    try:
        texts: Any = json.loads(str(stored))
        "".join(texts).encode()  # raises for other values and for lone surrogates
    except (TypeError, ValueError, RecursionError):
        texts = None
    return tuple(cast("list[str]", texts)) if isinstance(texts, list) else (str(stored),)


def parse_object(stored: object) -> Any:
    """Parse a stored JSON value. Other content, from other programs, becomes {"text": ...}."""
    try:
        return json.loads(str(stored))
    except (ValueError, RecursionError):
        return {"text": str(stored)}


def _parse_tags(stored: object) -> tuple[str, ...]:
    return parse_texts(stored) if stored else ()


# Other programs may have stored bytes or numbers; `str` turns them into text.
_PARSERS: Final[Mapping[str, Callable[[object], Any]]] = {
    **dict.fromkeys(("verified", "required", "stale"), bool),
    **dict.fromkeys(("markdown", "event_id", "trace_id", "event_type", "payload"), str),
    **dict.fromkeys(("created_at", "previous_hash", "event_hash"), str),
    **dict.fromkeys(("tags", "evidence_refs"), _parse_tags),
    **dict.fromkeys(("summary", "decision"), parse_object),
    "refs": parse_texts,
}


def scan(
    connection: Connection,
    kind: type[_R],
    key: str | None = None,
    *,
    column: str | None = None,
    page: tuple[int, int] = (ALL_ROWS, 0),
) -> Iterator[_R]:
    """Yield the records of a kind, in the order of their ids or of writing.

    Args:
        key: Only records with this id, or of the record with this id: the requirements of an
            opportunity, the entries of a run, the events of a trace.
        column: The column of the key, if it is another one.
        page: Maximum number of records, and number of records to skip.
    """
    table = _TABLES[kind]
    names = [field.name for field in fields(cast("Any", kind)) if field.name != "requirements"]
    columns = ", ".join(_COLUMNS.get(name, name) for name in names)
    condition = "" if key is None else f"WHERE {column or table.key} = ?"
    read = connection.stream if key is None else connection.execute
    rows = read(
        f"SELECT {columns} FROM {table.name} {table.join} {condition} "  # noqa: S608
        f"ORDER BY {table.order} LIMIT ? OFFSET ?",
        (*([] if key is None else [key]), *page),
    )
    for row in rows:
        values: dict[str, Any] = {
            name: _PARSERS[name](value) if name in _PARSERS else value
            for name, value in zip(names, row, strict=True)
        }
        if kind is Opportunity:
            parts = scan(connection, Requirement, values["opportunity_id"])
            values["requirements"] = tuple(parts)
        yield kind(**values)


def find(
    connection: Connection, kind: type[_R], key: str, *, column: str | None = None
) -> _R | None:
    """Return the first record with a key, None for an unknown key."""
    return next(iter(list(scan(connection, kind, key, column=column, page=(1, 0)))), None)


def insert(
    connection: Connection, table: str, rows: Sequence[Mapping[str, Any]], conflict: str = ""
) -> None:
    """Insert rows with the same fields. Lists and objects become JSON.

    Args:
        conflict: The SQL clause ON CONFLICT.
    """
    if not rows:
        return
    columns = ", ".join(_COLUMNS.get(name, name) for name in rows[0])
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) {conflict}",  # noqa: S608
        ([_stored(value) for value in row.values()] for row in rows),
    )


def _stored(value: Any) -> str | int | None:
    if isinstance(value, int):
        return int(value)  # PostgreSQL takes no truth value for a number
    return value if isinstance(value, str) or value is None else compact_json(value)


def upsert(connection: Connection, records: Iterable[Atom | Opportunity | Interaction]) -> None:
    """Insert or replace records of different ids.

    Interactions keep their state, which only events change.
    """
    # All records of a kind at once: a server then needs one answer, and not one for each.
    for kind, group in groupby(records, type):
        table, rows, parts = _TABLES[kind], list[dict[str, Any]](), list[dict[str, Any]]()
        for record in group:
            row = asdict(record)
            for idx, part in enumerate(row.pop("requirements", ())):
                parts.append({"opportunity_id": row["opportunity_id"], "idx": idx, **part})
            rows.append(row)
        replaced = list(rows[0])
        if kind is Interaction:
            replaced = ["opportunity_id"]
            rows = [{**row, "contact_id": ""} for row in rows]  # a column that no code reads
        changes = (f"{_COLUMNS.get(name, name)}" for name in replaced)
        sets = ", ".join(f"{column} = excluded.{column}" for column in changes)
        insert(connection, table.name, rows, f"ON CONFLICT ({table.key}) DO UPDATE SET {sets}")
        if kind is Opportunity:
            keys = [(row["opportunity_id"],) for row in rows]
            connection.executemany("DELETE FROM requirements WHERE opportunity_id = ?", keys)
            insert(connection, "requirements", parts)
        elif kind is Atom:
            next_number(connection, "atoms")


def atoms_revision(connection: Connection) -> int:
    """Return a number that increases with each `upsert` of atoms by any process."""
    query = "SELECT value FROM id_counters WHERE name = 'atoms'"
    row = connection.execute(query).fetchone()
    return row[0] if row else -1


def raise_atoms_revision(connection: Connection, other: int) -> None:
    """Make the revision higher than it is, and than that of the database that this one replaces.

    Servers keep the words of the atoms by the revision, and read them again when it differs.
    """
    # Writers may be first, until the other database is replaced.
    revision = max(atoms_revision(connection), other) + _ROOM_FOR_WRITERS
    connection.execute(
        "INSERT INTO id_counters VALUES ('atoms', ?) ON CONFLICT (name) "
        "DO UPDATE SET value = excluded.value",
        (revision,),
    )


def next_number(connection: Connection, name: str) -> int:
    """Increment a counter and return its value, 0 for a new counter."""
    connection.execute(
        "INSERT INTO id_counters VALUES (?, 0) ON CONFLICT (name) "
        "DO UPDATE SET value = id_counters.value + 1",
        (name,),
    )
    query = "SELECT value FROM id_counters WHERE name = ?"
    return int(connection.execute(query, (name,)).fetchone()[0])
