"""Counters that outlive a process."""

from typing import Final

from alembic import op
from sqlalchemy import Column, Integer, Text

revision: Final = "0006"
down_revision: Final = "0005"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "id_counters",
        Column("name", Text, primary_key=True),
        Column("value", Integer, nullable=False),
    )
