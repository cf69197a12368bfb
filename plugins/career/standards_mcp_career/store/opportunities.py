"""Opportunities, with their requirements in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, select
from sqlalchemy.dialects.sqlite import insert

from standards_mcp_career.records import Opportunity, Requirement

from .tables import opportunities, requirements

_FIELDS: Final = ("company", "role_title", "source")
_ALL: Final = (
    select(opportunities, requirements.c.text, requirements.c.tags_json, requirements.c.required)
    .outerjoin(requirements)
    .order_by(opportunities.c.opportunity_id, requirements.c.idx)
)


def upsert(connection: Connection, records: Sequence[Opportunity]) -> None:
    """Insert or replace opportunities."""
    for record in records:
        values = {name: getattr(record, name) for name in _FIELDS}
        new = insert(opportunities).values(opportunity_id=record.opportunity_id, **values)
        connection.execute(
            new.on_conflict_do_update(index_elements=["opportunity_id"], set_=values)
        )
        is_its = requirements.c.opportunity_id == record.opportunity_id
        connection.execute(delete(requirements).where(is_its))
        rows = [
            {
                "opportunity_id": record.opportunity_id,
                "idx": idx,
                "text": each.text,
                "tags_json": each.tags,
                "required": each.required,
            }
            for idx, each in enumerate(record.requirements)
        ]
        if rows:
            connection.execute(insert(requirements), rows)


def get(connection: Connection, opportunity_id: str) -> Opportunity | None:
    """Return an opportunity, None for an unknown id."""
    found = _read(connection, _ALL.where(opportunities.c.opportunity_id == opportunity_id))
    return found[0] if found else None


def read_all(connection: Connection) -> list[Opportunity]:
    """Return all opportunities, in the order of their ids."""
    return _read(connection, _ALL)


def _read(connection: Connection, wanted: Select[Any]) -> list[Opportunity]:
    rows = connection.execute(wanted)
    found: list[Opportunity] = []
    for opportunity_id, group in groupby(rows, key=lambda row: row.opportunity_id):
        parts = list(group)
        values = {name: getattr(parts[0], name) for name in _FIELDS}
        its = tuple(
            Requirement(text=part.text, tags=part.tags_json, required=part.required)
            for part in parts
            if part.text is not None
        )
        found.append(Opportunity(opportunity_id=opportunity_id, requirements=its, **values))
    return found
