"""What databases of other programs have is made fit: numbers of runs, hashes, one more trigger."""

from __future__ import annotations

import hashlib
from typing import Final

from alembic import op
from sqlalchemy import text

revision: Final = "0010"
down_revision: Final = "0009"
_LAST_RUN: Final = """
    INSERT INTO id_counters (name, value)
    SELECT 'run', max(CAST(substr(run_id, 5) AS INTEGER)) FROM index_runs
    WHERE run_id GLOB 'run-[0-9]*' GROUP BY substr(run_id, 1, 4)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
"""
_HASH: Final = text(
    "UPDATE OR IGNORE resumes SET resume_hash = :resume_hash WHERE resume_id = :resume_id"
)
_TRIGGER: Final = """
    CREATE TRIGGER audit_events_no_replace BEFORE INSERT ON audit_events
    WHEN NEW.event_id IN (SELECT event_id FROM audit_events)
      OR NEW.rowid IN (SELECT rowid FROM audit_events)
    BEGIN SELECT RAISE(ABORT, 'audit events are never replaced'); END
"""


def upgrade() -> None:
    """Go on counting after the last run, hash resumes by SHA-256, keep rows by their numbers, too.

    Of resumes with the same text, the oldest gets the hash.
    """
    connection = op.get_bind()
    op.execute(_LAST_RUN)
    rows = connection.execute(
        text("SELECT resume_id, resume_md FROM resumes ORDER BY created_at, resume_id")
    ).all()
    for resume_id, markdown in rows:
        hashed = hashlib.sha256(str(markdown).encode()).hexdigest()
        connection.execute(_HASH, {"resume_id": resume_id, "resume_hash": f"sha256:{hashed}"})
    op.execute("DROP TRIGGER audit_events_no_replace")
    op.execute(_TRIGGER)
