"""Repository of atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, select
from sqlalchemy.dialects.sqlite import insert

from standards_mcp_career.records import Atom

from .database import last_number, next_number
from .tables import atoms

_REVISION: Final = "atoms"


def upsert(connection: Connection, records: Sequence[Atom]) -> None:
    """Insert or replace atoms."""
    if not records:
        return
    new = insert(atoms)
    names = [column.name for column in atoms.columns if column.name != "atom_id"]
    values = {name: new.excluded[name] for name in names}
    rows = [_row_of(record) for record in records]
    connection.execute(new.on_conflict_do_update(index_elements=["atom_id"], set_=values), rows)
    next_number(connection, _REVISION)


def revision(connection: Connection) -> int:
    """Return a number that increases with each `upsert` by any process."""
    return last_number(connection, _REVISION)


def get(connection: Connection, atom_id: str) -> Atom | None:
    """Return an atom, None for an unknown id."""
    row = connection.execute(select(atoms).where(atoms.c.atom_id == atom_id)).first()
    return None if row is None else _atom_of(row)


def read_all(connection: Connection) -> list[Atom]:
    """Return all atoms, in the order of their ids."""
    ordered = select(atoms).order_by(atoms.c.atom_id)
    return [_atom_of(row) for row in connection.execute(ordered)]


def _row_of(atom: Atom) -> dict[str, Any]:
    return {
        "atom_id": atom.atom_id,
        "domain": atom.domain,
        "title": atom.title,
        "claim": atom.claim,
        "tags_json": atom.tags,
        "verified": atom.verified,
        "evidence_refs_json": atom.evidence_refs,
    }


def _atom_of(row: Row[Any]) -> Atom:
    return Atom(
        atom_id=row.atom_id,
        domain=row.domain,
        title=row.title,
        claim=row.claim,
        tags=row.tags_json,
        verified=row.verified,
        evidence_refs=row.evidence_refs_json,
    )
