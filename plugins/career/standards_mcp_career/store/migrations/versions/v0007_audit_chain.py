"""Audit events are chained by hashes, and can no longer be changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, cast

from alembic import op
from sqlalchemy import Column, Text, text

revision: Final = "0007"
down_revision: Final = "0006"
_FIELDS: Final = ("created_at", "event_id", "event_type", "payload", "refs", "trace_id")
_ROWS: Final = text(
    "SELECT rowid, trace_id, event_id, event_type, payload, created_at, entity_ids_json "
    "FROM audit_events ORDER BY trace_id, idx, rowid"
)
_UPDATE: Final = text(
    "UPDATE audit_events SET idx = :idx, entity_ids_json = :refs_json, "
    "previous_hash = :previous_hash, event_hash = :event_hash WHERE rowid = :rowid"
)
_TRIGGERS: Final = (
    """
    CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
    BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END
    """,
    """
    CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
    BEGIN SELECT RAISE(ABORT, 'audit events are never deleted'); END
    """,
    # INSERT OR REPLACE deletes a row without the trigger above.
    """
    CREATE TRIGGER audit_events_no_replace BEFORE INSERT ON audit_events
    WHEN NEW.event_id IN (SELECT event_id FROM audit_events)
    BEGIN SELECT RAISE(ABORT, 'audit events are never replaced'); END
    """,
)


def upgrade() -> None:
    """Add the hashes, also to the events that are there, and refuse changes from now on."""
    for name in ("previous_hash", "event_hash"):
        op.add_column("audit_events", Column(name, Text, nullable=False, server_default=""))
    connection = op.get_bind()
    rows = connection.execute(_ROWS).mappings().all()
    for _, events in groupby(rows, key=lambda row: row["trace_id"]):
        connection.execute(_UPDATE, _chained([dict(event) for event in events]))
    for trigger in _TRIGGERS:
        op.execute(trigger)


def _chained(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is new in the events of a trace. The rule is repeated here, as it was then."""
    previous_hash, updates = "0" * 64, list[dict[str, Any]]()
    for idx, event in enumerate(events):
        refs = _refs(str(event["entity_ids_json"]))
        # Bytes may stand where texts should.
        texts = {name: str(event[name]) for name in _FIELDS if name != "refs"}
        hashed = _compact({**texts, "refs": refs})
        event_hash = hashlib.sha256((hashed + previous_hash).encode()).hexdigest()
        update = {"idx": idx, "refs_json": _compact(refs), "rowid": event["rowid"]}
        updates.append({**update, "previous_hash": previous_hash, "event_hash": event_hash})
        previous_hash = event_hash
    return updates


def _refs(stored: str) -> list[str]:
    """Return the ids that stand in a text; what is no list of texts is kept as one."""
    try:
        refs: Any = json.loads(stored)
        "".join(refs).encode()  # else it has what is no text, or half of a character
    except (TypeError, ValueError, RecursionError):
        refs = None
    return cast("list[str]", refs) if isinstance(refs, list) else [stored]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
