"""Receipts of the events that were applied to interactions."""

from typing import Final

from alembic import op
from sqlalchemy import Column, ForeignKeyConstraint, Integer, Text

revision: Final = "0008"
down_revision: Final = "0007"


def upgrade() -> None:
    """Create the table, and count the transitions."""
    op.add_column(
        "interactions", Column("transition_index", Integer, nullable=False, server_default="0")
    )
    op.create_table(
        "interaction_receipts",
        Column("interaction_id", Text, primary_key=True),
        Column("idempotency_key", Text, primary_key=True),
        Column("event", Text, nullable=False),
        Column("after_state", Integer, nullable=False),
        Column("transition_index", Integer, nullable=False),
        ForeignKeyConstraint(["interaction_id"], ["interactions.interaction_id"]),
    )
