"""Atoms, opportunities, interactions and the audit log."""

from typing import Final

from alembic import op
from sqlalchemy import CheckConstraint, Column, ForeignKeyConstraint, Integer, Text

revision: Final = "0001"
down_revision: Final = None


def upgrade() -> None:
    """Create the tables. Parts of them may be there: the original did not use transactions."""
    op.create_table(
        "atoms",
        Column("atom_id", Text, primary_key=True),
        Column("domain", Text, nullable=False),
        Column("title", Text, nullable=False),
        Column("claim", Text, nullable=False),
        Column("tags_json", Text, nullable=False),
        Column("verified", Integer, CheckConstraint("verified IN (0, 1)"), nullable=False),
        Column("evidence_refs_json", Text, nullable=False),
        if_not_exists=True,
    )
    op.create_index("idx_atoms_verified", "atoms", ["verified"], if_not_exists=True)
    op.create_table(
        "opportunities",
        Column("opportunity_id", Text, primary_key=True),
        Column("company", Text, nullable=False),
        Column("role_title", Text, nullable=False),
        Column("source", Text, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "requirements",
        Column("opportunity_id", Text, primary_key=True),
        Column("idx", Integer, primary_key=True, autoincrement=False),
        Column("text", Text, nullable=False),
        Column("tags_json", Text, nullable=False),
        Column("required", Integer, CheckConstraint("required IN (0, 1)"), nullable=False),
        ForeignKeyConstraint(
            ["opportunity_id"], ["opportunities.opportunity_id"], ondelete="CASCADE"
        ),
        if_not_exists=True,
    )
    op.create_table(
        "interactions",
        Column("interaction_id", Text, primary_key=True),
        Column("contact_id", Text, nullable=False),
        Column("opportunity_id", Text, nullable=False),
        Column("state", Integer, nullable=False),
        ForeignKeyConstraint(["opportunity_id"], ["opportunities.opportunity_id"]),
        if_not_exists=True,
    )
    op.create_table(
        "audit_events",
        Column("event_id", Text, primary_key=True),
        Column("trace_id", Text, nullable=False),
        Column("event_type", Text, nullable=False),
        Column("payload", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("entity_ids_json", Text, nullable=False),
        Column("idx", Integer, nullable=False),
        if_not_exists=True,
    )
    op.create_index(
        "idx_audit_events_trace", "audit_events", ["trace_id", "idx"], if_not_exists=True
    )
