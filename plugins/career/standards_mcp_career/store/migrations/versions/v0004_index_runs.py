"""Runs of the index, and what each has indexed."""

from typing import Final

from alembic import op
from sqlalchemy import Column, ForeignKeyConstraint, Text

revision: Final = "0004"
down_revision: Final = "0003"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "index_runs",
        Column("run_id", Text, primary_key=True),
        Column("started_at", Text),
        Column("completed_at", Text),
        Column("provider_id", Text, nullable=False),
        Column("model_id", Text, nullable=False),
        Column("prompt_version", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("summary_json", Text, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "index_entries",
        Column("run_id", Text, primary_key=True),
        Column("artifact_type", Text, primary_key=True),
        Column("artifact_id", Text, primary_key=True),
        Column("source_hash", Text, nullable=False),
        Column("vector_hash", Text, nullable=False),
        Column("indexed_at", Text),
        ForeignKeyConstraint(["run_id"], ["index_runs.run_id"], ondelete="CASCADE"),
        if_not_exists=True,
    )
    op.create_index(
        "idx_index_entries_artifact",
        "index_entries",
        ["artifact_type", "artifact_id"],
        if_not_exists=True,
    )
