"""Resumes, and where they came from."""

from typing import Final

from alembic import op
from sqlalchemy import Column, ForeignKeyConstraint, Text

revision: Final = "0002"
down_revision: Final = "0001"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "resumes",
        Column("resume_id", Text, primary_key=True),
        Column("resume_md", Text, nullable=False),
        Column("resume_hash", Text, nullable=False, unique=True),
        Column("created_at", Text, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "resume_meta",
        Column("resume_id", Text, primary_key=True),
        Column("source_path", Text),
        Column("source_hash", Text, nullable=False),
        Column("extraction_method", Text, nullable=False),
        Column("extracted_at", Text),
        Column("ingestion_version", Text, nullable=False),
        ForeignKeyConstraint(["resume_id"], ["resumes.resume_id"], ondelete="CASCADE"),
        if_not_exists=True,
    )
