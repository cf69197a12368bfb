"""Migrate the database, one version in one transaction. Released versions never change."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, func, insert, inspect, select, text

from standards_mcp import ApiError, InvalidInputError
from standards_mcp.commands import upgrade_command
from standards_mcp_career.primitives import listed

from .database import Store
from .original_schema import INDEX_RUNS, RECORDS, RESUME_TOKENS, RESUMES
from .tables import schema_version

Upgrade: TypeAlias = Callable[[Connection], None]
_NOW: Final = func.strftime("%Y-%m-%dT%H:%M:%SZ", "now")
# Alembic's own commands would load the scripts anew for each version, 40 ms each, and decide the
# order of stamp and commit. So `schema_version` decides here.
_VERSION_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS schema_version (
        version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL
    )
    """,
    # Alembic's table: files of earlier releases have it, and other programs may read it.
    "CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) PRIMARY KEY NOT NULL)",
    "DELETE FROM alembic_version",
)


@dataclass(frozen=True, slots=True)
class Migrated:
    """The versions of a database before and after a migration."""

    before: int
    after: int


def _execute(statements: Sequence[str], connection: Connection) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)


_DECISIONS: Final = (
    """
    CREATE TABLE decision_records (
        number INTEGER PRIMARY KEY NOT NULL,
        decision_id TEXT NOT NULL UNIQUE,
        trace_id TEXT NOT NULL,
        decision_json TEXT NOT NULL
    )
    """,
    "CREATE INDEX idx_decision_records_trace ON decision_records (trace_id, number)",
)
_COUNTERS: Final = (
    "CREATE TABLE id_counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL)",
)
_RECEIPTS: Final = (
    "ALTER TABLE interactions ADD COLUMN transition_index INTEGER NOT NULL DEFAULT '0'",
    """
    CREATE TABLE interaction_receipts (
        interaction_id TEXT NOT NULL REFERENCES interactions (interaction_id),
        idempotency_key TEXT NOT NULL,
        event TEXT NOT NULL,
        after_state INTEGER NOT NULL,
        transition_index INTEGER NOT NULL,
        PRIMARY KEY (interaction_id, idempotency_key)
    )
    """,
)
_STALE_ENTRIES: Final = ("ALTER TABLE index_entries ADD COLUMN stale INTEGER NOT NULL DEFAULT '0'",)

_HASH_COLUMNS: Final = (
    "ALTER TABLE audit_events ADD COLUMN previous_hash TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE audit_events ADD COLUMN event_hash TEXT NOT NULL DEFAULT ''",
)
_EVENTS: Final = text(
    "SELECT rowid, trace_id, event_id, event_type, payload, created_at, entity_ids_json "
    "FROM audit_events ORDER BY trace_id, idx, rowid"
)
_CHAIN_EVENT: Final = text(
    "UPDATE audit_events SET idx = :idx, entity_ids_json = :refs_json, "
    "previous_hash = :previous_hash, event_hash = :event_hash WHERE rowid = :rowid"
)
_APPEND_ONLY: Final = (
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


def _chain_events(connection: Connection) -> None:
    """Add hashes to all audit events, and make the table append-only."""
    _execute(_HASH_COLUMNS, connection)
    rows = connection.execute(_EVENTS).mappings().all()
    for _, events in groupby(rows, key=lambda row: row["trace_id"]):
        connection.execute(_CHAIN_EVENT, _chained([dict(event) for event in events]))
    _execute(_APPEND_ONLY, connection)


def _chained(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new column values of the events of one trace.

    The hash is computed here, and not by `audit.hash_of`, because a released version never changes.
    """
    names = ("created_at", "event_id", "event_type", "payload", "trace_id")
    previous_hash, updates = "0" * 64, list[dict[str, Any]]()
    for idx, event in enumerate(events):
        refs = listed(str(event["entity_ids_json"]))
        # Other programs may have stored bytes, which `str` turns into text.
        hashed = _compact({**{name: str(event[name]) for name in names}, "refs": refs})
        event_hash = hashlib.sha256((hashed + previous_hash).encode()).hexdigest()
        update = {"idx": idx, "refs_json": _compact(refs), "rowid": event["rowid"]}
        updates.append({**update, "previous_hash": previous_hash, "event_hash": event_hash})
        previous_hash = event_hash
    return updates


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


_LAST_RUN: Final = """
    INSERT INTO id_counters (name, value)
    SELECT 'run', max(CAST(substr(run_id, 5) AS INTEGER)) FROM index_runs
    WHERE run_id GLOB 'run-[0-9]*' GROUP BY substr(run_id, 1, 4)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
"""
_HASH_RESUME: Final = text(
    "UPDATE OR IGNORE resumes SET resume_hash = :resume_hash WHERE resume_id = :resume_id"
)
_NO_REPLACE: Final = (
    "DROP TRIGGER audit_events_no_replace",
    """
    CREATE TRIGGER audit_events_no_replace BEFORE INSERT ON audit_events
    WHEN NEW.event_id IN (SELECT event_id FROM audit_events)
      OR NEW.rowid IN (SELECT rowid FROM audit_events)
    BEGIN SELECT RAISE(ABORT, 'audit events are never replaced'); END
    """,
)


def _adopt_originals(connection: Connection) -> None:
    """Continue the run numbers of the original, and hash its resumes by SHA-256.

    Of several resumes with the same text, the oldest gets the hash. Audit events also become
    protected against a replacement by row number.
    """
    connection.exec_driver_sql(_LAST_RUN)
    rows = connection.execute(
        text("SELECT resume_id, resume_md FROM resumes ORDER BY created_at, resume_id")
    ).all()
    for resume_id, markdown in rows:
        digest = hashlib.sha256(str(markdown).encode()).hexdigest()
        connection.execute(
            _HASH_RESUME, {"resume_id": resume_id, "resume_hash": f"sha256:{digest}"}
        )
    _execute(_NO_REPLACE, connection)


UPGRADES: Final[tuple[Upgrade, ...]] = (
    partial(_execute, RECORDS),
    partial(_execute, RESUMES),
    partial(_execute, RESUME_TOKENS),
    partial(_execute, INDEX_RUNS),
    partial(_execute, _DECISIONS),
    partial(_execute, _COUNTERS),
    _chain_events,
    partial(_execute, _RECEIPTS),
    partial(_execute, _STALE_ENTRIES),
    _adopt_originals,
)
"""The upgrade to each version, from version 1."""
LATEST: Final = len(UPGRADES)
_OLDEST_SQLITE: Final = (3, 35)
"""The first version with RETURNING."""


def open_store(path: Path | None = None) -> Store:
    """Open a database and bring it to the newest version.

    Raises:
        ApiError: It cannot be opened or migrated, or SQLite is too old.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        least = ".".join(map(str, _OLDEST_SQLITE))
        raise ApiError(
            f"This Python has SQLite {sqlite3.sqlite_version}; the plugin needs {least} or later."
        )
    store = Store(path)
    try:
        migrate(store)
    except BaseException:
        store.close()
        raise
    return store


def migrate(store: Store, to: int = LATEST) -> Migrated:
    """Apply the missing versions.

    Raises:
        ApiError: The database fails, or its version is newer than this plugin.
        InvalidInputError: The version does not exist, or the database is beyond it.
    """
    if not 1 <= to <= LATEST:
        raise InvalidInputError(f"There is no version {to}; they are 1 to {LATEST}.")
    with store.reading() as connection:
        before = after = version_of(connection)
    if before > LATEST:
        raise ApiError(
            f"The database has version {before}, and this plugin knows {LATEST}: "
            f"run `{upgrade_command('standards-mcp-career')}`, or name another file in "
            "plugins.career.db."
        )
    if before > to:
        raise InvalidInputError(f"The database has version {before}; nothing leads back to {to}.")
    while after < to:
        after = _apply_next(store)
    return Migrated(before, after)


def version_of(connection: Connection) -> int:
    """Return the newest applied version, 0 for an empty database."""
    if not inspect(connection).has_table(schema_version.name):
        return 0
    return connection.scalar(select(func.max(schema_version.c.version))) or 0


def _apply_next(store: Store) -> int:
    """Apply the next version and return it.

    The version is read inside of the transaction: another process may have migrated meanwhile.
    """
    with store.writing() as connection:
        after = version_of(connection) + 1
        if after > LATEST:
            return LATEST
        UPGRADES[after - 1](connection)
        _execute(_VERSION_TABLES, connection)
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (f"{after:04}",))
        connection.execute(insert(schema_version).values(version=after, applied_at=_NOW))
        return after
