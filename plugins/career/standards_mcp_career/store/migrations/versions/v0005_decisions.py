"""Decisions: what a match has chosen, and why."""

from typing import Final

from alembic import op
from sqlalchemy import Column, Integer, Text

revision: Final = "0005"
down_revision: Final = "0004"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "decision_records",
        Column("number", Integer, primary_key=True),
        Column("decision_id", Text, nullable=False, unique=True),
        Column("trace_id", Text, nullable=False),
        Column("decision_json", Text, nullable=False),
    )
    op.create_index("idx_decision_records_trace", "decision_records", ["trace_id", "number"])
