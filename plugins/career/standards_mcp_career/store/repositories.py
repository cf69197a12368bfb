"""Store and read atoms, opportunities, interactions, resumes and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, select, true, update
from sqlalchemy.dialects.sqlite import insert

from standards_mcp_career.records import Atom, Interaction, Opportunity, Requirement
from standards_mcp_career.transitions import Position, Receipt

from .database import last_number, next_number, record_of
from .tables import (
    atoms,
    decision_records,
    interaction_receipts,
    interactions,
    opportunities,
    requirements,
    resume_meta,
    resumes,
)

_REVISION: Final = "atoms"
_OPPORTUNITY_FIELDS: Final = ("company", "role_title", "source")
_OPPORTUNITIES: Final = (
    select(opportunities, requirements.c.text, requirements.c.tags, requirements.c.required)
    .outerjoin(requirements)
    .order_by(opportunities.c.opportunity_id, requirements.c.idx)
)
_RESUMES: Final = select(resumes, resume_meta).outerjoin(resume_meta)


@dataclass(frozen=True, slots=True)
class ResumeMeta:
    """The origin of a resume.

    Attributes:
        source_hash: SHA-256 of the file's bytes, in hexadecimal digits.
        extracted_at: UTC, as 2026-01-01T00:00:00Z.
    """

    source_path: str | None
    source_hash: str
    extraction_method: str
    extracted_at: str | None
    ingestion_version: str


@dataclass(frozen=True, slots=True)
class Resume:
    """A resume, as Markdown.

    Attributes:
        resume_hash: ``sha256:`` and the hash of the Markdown.
        meta: None for a resume of another program.
    """

    resume_id: str
    markdown: str
    resume_hash: str
    created_at: str
    meta: ResumeMeta | None


def upsert_atoms(connection: Connection, records: Sequence[Atom]) -> None:
    """Insert or replace atoms."""
    if not records:
        return
    new = insert(atoms)
    values = {column.key: new.excluded[column.key] for column in atoms.c if not column.primary_key}
    rows = [asdict(record) for record in records]
    connection.execute(new.on_conflict_do_update(index_elements=["atom_id"], set_=values), rows)
    next_number(connection, _REVISION)


def atoms_revision(connection: Connection) -> int:
    """Return a number that increases with each `upsert_atoms` by any process."""
    return last_number(connection, _REVISION)


def get_atom(connection: Connection, atom_id: str) -> Atom | None:
    """Return an atom, None for an unknown id."""
    row = connection.execute(select(atoms).where(atoms.c.atom_id == atom_id)).first()
    return None if row is None else record_of(Atom, row)


def all_atoms(connection: Connection) -> list[Atom]:
    """Return all atoms, in the order of their ids."""
    rows = connection.execute(select(atoms).order_by(atoms.c.atom_id))
    return [record_of(Atom, row) for row in rows]


def upsert_opportunities(connection: Connection, records: Sequence[Opportunity]) -> None:
    """Insert or replace opportunities."""
    for record in records:
        values = {name: getattr(record, name) for name in _OPPORTUNITY_FIELDS}
        new = insert(opportunities).values(opportunity_id=record.opportunity_id, **values)
        connection.execute(
            new.on_conflict_do_update(index_elements=["opportunity_id"], set_=values)
        )
        is_its = requirements.c.opportunity_id == record.opportunity_id
        connection.execute(delete(requirements).where(is_its))
        rows = [
            {"opportunity_id": record.opportunity_id, "idx": idx, **asdict(requirement)}
            for idx, requirement in enumerate(record.requirements)
        ]
        if rows:
            connection.execute(insert(requirements), rows)


def get_opportunity(connection: Connection, opportunity_id: str) -> Opportunity | None:
    """Return an opportunity, None for an unknown id."""
    is_it = opportunities.c.opportunity_id == opportunity_id
    return next(iter(_read_opportunities(connection, _OPPORTUNITIES.where(is_it))), None)


def all_opportunities(connection: Connection) -> list[Opportunity]:
    """Return all opportunities, in the order of their ids."""
    return _read_opportunities(connection, _OPPORTUNITIES)


def _read_opportunities(connection: Connection, wanted: Select[Any]) -> list[Opportunity]:
    rows = connection.execute(wanted)
    records = list[Opportunity]()
    for opportunity_id, group in groupby(rows, key=lambda row: row.opportunity_id):
        parts = list(group)
        values = {name: getattr(parts[0], name) for name in _OPPORTUNITY_FIELDS}
        its = tuple(record_of(Requirement, part) for part in parts if part.text is not None)
        records.append(Opportunity(opportunity_id=opportunity_id, requirements=its, **values))
    return records


def upsert_interactions(connection: Connection, records: Sequence[Interaction]) -> None:
    """Insert or update interactions. Existing ones keep their state: only events change it."""
    for record in records:
        # No code reads contact_id, a column of the original program.
        new = insert(interactions).values(contact_id="", **asdict(record))
        kept = {"opportunity_id": record.opportunity_id}
        connection.execute(new.on_conflict_do_update(index_elements=["interaction_id"], set_=kept))


def get_interaction(connection: Connection, interaction_id: str) -> Interaction | None:
    """Return an interaction, None for an unknown id."""
    is_it = interactions.c.interaction_id == interaction_id
    row = connection.execute(select(interactions).where(is_it)).first()
    return None if row is None else record_of(Interaction, row)


def all_interactions(connection: Connection) -> list[Interaction]:
    """Return all interactions, in the order of their ids."""
    rows = connection.execute(select(interactions).order_by(interactions.c.interaction_id))
    return [record_of(Interaction, row) for row in rows]


def position_of(connection: Connection, interaction_id: str) -> Position | None:
    """Return the position of an interaction, None for an unknown id."""
    interaction = get_interaction(connection, interaction_id)
    if interaction is None:
        return None
    return Position(interaction.state, interaction.transition_index)


def move_interaction(connection: Connection, interaction_id: str, to: Position) -> None:
    """Set the position of an interaction, unless it is further already."""
    is_behind = (
        interactions.c.interaction_id == interaction_id,
        interactions.c.transition_index < to.index,
    )
    values = {"state": to.state, "transition_index": to.index}
    connection.execute(update(interactions).where(*is_behind).values(values))


def receipt_of(connection: Connection, interaction_id: str, key: str) -> Receipt | None:
    """Return the receipt of an idempotency key."""
    wanted = select(interaction_receipts).where(
        interaction_receipts.c.interaction_id == interaction_id,
        interaction_receipts.c.idempotency_key == key,
    )
    row = connection.execute(wanted).first()
    if row is None:
        return None
    return Receipt(row.event, Position(row.after_state, row.transition_index))


def add_receipt(connection: Connection, interaction_id: str, key: str, receipt: Receipt) -> None:
    """Store a receipt under an idempotency key."""
    row = {
        "interaction_id": interaction_id,
        "idempotency_key": key,
        "event": receipt.event,
        "after_state": receipt.after.state,
        "transition_index": receipt.after.index,
    }
    connection.execute(insert(interaction_receipts).values(row))


def add_resume(connection: Connection, resume: Resume) -> None:
    """Insert a new resume."""
    row = asdict(resume)
    meta = row.pop("meta")
    connection.execute(insert(resumes).values(row))
    if meta is not None:
        connection.execute(insert(resume_meta).values(resume_id=resume.resume_id, **meta))


def get_resume(connection: Connection, resume_id: str) -> Resume | None:
    """Return the resume with this id."""
    return _one_resume(connection, resumes.c.resume_id == resume_id)


def find_resume(connection: Connection, resume_hash: str) -> Resume | None:
    """Return the resume with this content hash."""
    return _one_resume(connection, resumes.c.resume_hash == resume_hash)


def all_resumes(connection: Connection) -> list[Resume]:
    """Return all resumes, in the order of their ids."""
    return [_resume_of(row) for row in connection.execute(_RESUMES.order_by(resumes.c.resume_id))]


def _one_resume(connection: Connection, condition: ColumnElement[bool]) -> Resume | None:
    row = connection.execute(_RESUMES.where(condition)).first()
    return None if row is None else _resume_of(row)


def _resume_of(row: Row[Any]) -> Resume:
    meta = None if row.source_hash is None else record_of(ResumeMeta, row)
    # Other programs may have stored bytes, which `str` turns into text.
    return Resume(row.resume_id, str(row.markdown), row.resume_hash, row.created_at, meta)


def add_decision(connection: Connection, decision: Mapping[str, Any]) -> None:
    """Insert a decision, which has a ``decision_id`` and a ``trace_id``."""
    row = {name: decision[name] for name in ("decision_id", "trace_id")}
    connection.execute(insert(decision_records).values(**row, decision=dict(decision)))


def get_decision(connection: Connection, decision_id: str) -> dict[str, Any] | None:
    """Return a decision, None for an unknown id."""
    is_it = decision_records.c.decision_id == decision_id
    return next(iter(_read_decisions(connection, is_it)), None)


def decisions_of_trace(connection: Connection, trace_id: str) -> list[dict[str, Any]]:
    """Return the decisions of a trace, the oldest first."""
    return _read_decisions(connection, decision_records.c.trace_id == trace_id)


def all_decisions(connection: Connection) -> list[dict[str, Any]]:
    """Return all decisions, the oldest first."""
    return _read_decisions(connection, true())


def _read_decisions(connection: Connection, condition: ColumnElement[bool]) -> list[dict[str, Any]]:
    wanted = select(decision_records.c.decision).where(condition)
    return list(connection.scalars(wanted.order_by(decision_records.c.number)))
