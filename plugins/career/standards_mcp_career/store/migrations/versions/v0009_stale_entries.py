"""Entries of the index say whether their artifact had changed."""

from typing import Final

from alembic import op
from sqlalchemy import Column, Integer

revision: Final = "0009"
down_revision: Final = "0008"


def upgrade() -> None:
    """Add the column."""
    op.add_column("index_entries", Column("stale", Integer, nullable=False, server_default="0"))
