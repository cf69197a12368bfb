"""Store and read atoms, opportunities and interactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection, Row
from typing import Final

from .database import last_number, next_number
from .primitives import compact, listed
from .records import Atom, Interaction, Opportunity, Requirement

_REVISION: Final = "atoms"
_OPPORTUNITIES: Final = (
    "SELECT opportunities.*, text, tags_json, required FROM opportunities "
    "LEFT JOIN requirements USING (opportunity_id)"
)
_INTERACTIONS: Final = (
    "SELECT interaction_id, opportunity_id, state, transition_index FROM interactions"
)


def upsert_atoms(connection: Connection, records: Sequence[Atom]) -> None:
    """Insert or replace atoms."""
    if not records:
        return
    rows = (
        {
            **asdict(record),
            "tags": compact(record.tags),
            "evidence_refs": compact(record.evidence_refs),
        }
        for record in records
    )
    connection.executemany(
        "INSERT OR REPLACE INTO atoms "
        "VALUES (:atom_id, :domain, :title, :claim, :tags, :verified, :evidence_refs)",
        rows,
    )
    next_number(connection, _REVISION)


def atoms_revision(connection: Connection) -> int:
    """Return a number that increases with each `upsert_atoms` by any process."""
    return last_number(connection, _REVISION)


def get_atom(connection: Connection, atom_id: str) -> Atom | None:
    """Return an atom, None for an unknown id."""
    row = connection.execute("SELECT * FROM atoms WHERE atom_id = ?", (atom_id,)).fetchone()
    return _atom_of(row) if row else None


def all_atoms(connection: Connection) -> list[Atom]:
    """Return all atoms, in the order of their ids."""
    return [_atom_of(row) for row in connection.execute("SELECT * FROM atoms ORDER BY atom_id")]


def _atom_of(row: Row) -> Atom:
    atom_id, domain, title, claim, tags, verified, refs = row
    return Atom(atom_id, domain, title, claim, _listed(tags), bool(verified), _listed(refs))


def _listed(stored: object) -> tuple[str, ...]:
    return listed(stored) if stored else ()


def upsert_opportunities(connection: Connection, records: Sequence[Opportunity]) -> None:
    """Insert or replace opportunities."""
    for record in records:
        connection.execute(
            "INSERT INTO opportunities VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET company = "
            "excluded.company, role_title = excluded.role_title, source = excluded.source",
            (record.opportunity_id, record.company, record.role_title, record.source),
        )
        connection.execute(
            "DELETE FROM requirements WHERE opportunity_id = ?", (record.opportunity_id,)
        )
        rows = (
            (record.opportunity_id, idx, part.text, compact(part.tags), part.required)
            for idx, part in enumerate(record.requirements)
        )
        connection.executemany("INSERT INTO requirements VALUES (?, ?, ?, ?, ?)", rows)


def get_opportunity(connection: Connection, opportunity_id: str) -> Opportunity | None:
    """Return an opportunity, None for an unknown id."""
    its = f"{_OPPORTUNITIES} WHERE opportunity_id = ? ORDER BY idx"
    return next(_opportunities(connection.execute(its, (opportunity_id,))), None)


def all_opportunities(connection: Connection) -> list[Opportunity]:
    """Return all opportunities, in the order of their ids."""
    ordered = f"{_OPPORTUNITIES} ORDER BY opportunity_id, idx"
    return list(_opportunities(connection.execute(ordered)))


def _opportunities(rows: Iterable[Row]) -> Iterator[Opportunity]:
    for opportunity_id, group in groupby(rows, key=itemgetter("opportunity_id")):
        parts = list(group)
        requirements = tuple(
            Requirement(part["text"], _listed(part["tags_json"]), bool(part["required"]))
            for part in parts
            if part["text"] is not None
        )
        _, company, role_title, source, *_ = parts[0]
        yield Opportunity(opportunity_id, company, role_title, source, requirements)


def upsert_interactions(connection: Connection, records: Sequence[Interaction]) -> None:
    """Insert or update interactions. Existing ones keep their state: only events change it."""
    for record in records:
        # No code reads contact_id, a column of the original program.
        connection.execute(
            "INSERT INTO interactions "
            "(interaction_id, contact_id, opportunity_id, state, transition_index) "
            "VALUES (:interaction_id, '', :opportunity_id, :state, :transition_index) "
            "ON CONFLICT DO UPDATE SET opportunity_id = excluded.opportunity_id",
            asdict(record),
        )


def get_interaction(connection: Connection, interaction_id: str) -> Interaction | None:
    """Return an interaction, None for an unknown id."""
    its = f"{_INTERACTIONS} WHERE interaction_id = ?"
    row = connection.execute(its, (interaction_id,)).fetchone()
    return Interaction(*row) if row else None


def all_interactions(connection: Connection) -> list[Interaction]:
    """Return all interactions, in the order of their ids."""
    rows = connection.execute(f"{_INTERACTIONS} ORDER BY interaction_id")
    return [Interaction(*row) for row in rows]
