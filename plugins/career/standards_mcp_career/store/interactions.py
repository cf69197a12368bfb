"""Repository of interactions and of the receipts of applied events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select, update
from sqlalchemy.dialects.sqlite import insert

from standards_mcp_career.records import Interaction
from standards_mcp_career.transitions import Position, Receipt

from .tables import interaction_receipts, interactions


def upsert(connection: Connection, records: Sequence[Interaction]) -> None:
    """Insert or update interactions. Existing ones keep their state: only events change it."""
    for record in records:
        row = {
            "interaction_id": record.interaction_id,
            "contact_id": "",  # a column of the original program; no code reads it
            "opportunity_id": record.opportunity_id,
            "state": record.state,
            "transition_index": record.transition_index,
        }
        kept = {"opportunity_id": record.opportunity_id}
        new = insert(interactions).values(row)
        connection.execute(new.on_conflict_do_update(index_elements=["interaction_id"], set_=kept))


def get(connection: Connection, interaction_id: str) -> Interaction | None:
    """Return an interaction, None for an unknown id."""
    is_it = interactions.c.interaction_id == interaction_id
    row = connection.execute(select(interactions).where(is_it)).first()
    return None if row is None else _interaction_of(row)


def read_all(connection: Connection) -> list[Interaction]:
    """Return all interactions, in the order of their ids."""
    ordered = select(interactions).order_by(interactions.c.interaction_id)
    return [_interaction_of(row) for row in connection.execute(ordered)]


def position(connection: Connection, interaction_id: str) -> Position | None:
    """Return the position of an interaction, None for an unknown id."""
    interaction = get(connection, interaction_id)
    if interaction is None:
        return None
    return Position(interaction.state, interaction.transition_index)


def move(connection: Connection, interaction_id: str, to: Position) -> None:
    """Set the position of an interaction, unless it is further already."""
    is_behind = (
        interactions.c.interaction_id == interaction_id,
        interactions.c.transition_index < to.index,
    )
    values = {"state": to.state, "transition_index": to.index}
    connection.execute(update(interactions).where(*is_behind).values(values))


def receipt(connection: Connection, interaction_id: str, key: str) -> Receipt | None:
    """Return the receipt of an idempotency key."""
    wanted = select(interaction_receipts).where(
        interaction_receipts.c.interaction_id == interaction_id,
        interaction_receipts.c.idempotency_key == key,
    )
    row = connection.execute(wanted).first()
    if row is None:
        return None
    return Receipt(row.event, Position(row.after_state, row.transition_index))


def note(connection: Connection, interaction_id: str, key: str, receipt: Receipt) -> None:
    """Store a receipt under an idempotency key."""
    row = {
        "interaction_id": interaction_id,
        "idempotency_key": key,
        "event": receipt.event,
        "after_state": receipt.after.state,
        "transition_index": receipt.after.index,
    }
    connection.execute(insert(interaction_receipts).values(row))


def _interaction_of(row: Row[Any]) -> Interaction:
    return Interaction(row.interaction_id, row.opportunity_id, row.state, row.transition_index)
