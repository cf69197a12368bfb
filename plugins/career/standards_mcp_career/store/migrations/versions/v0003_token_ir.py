"""Tokens of resumes. Nothing reads them; the schema keeps their place."""

from typing import Final

from alembic import op
from sqlalchemy import Column, ForeignKeyConstraint, Text

revision: Final = "0003"
down_revision: Final = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "resume_token_ir",
        Column("token_ir_id", Text, primary_key=True),
        Column("resume_id", Text, nullable=False),
        Column("token_ir_json", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        ForeignKeyConstraint(["resume_id"], ["resumes.resume_id"], ondelete="CASCADE"),
        if_not_exists=True,
    )
    op.create_index(
        "idx_resume_token_ir_resume", "resume_token_ir", ["resume_id"], if_not_exists=True
    )
