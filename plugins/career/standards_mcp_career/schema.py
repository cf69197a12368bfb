"""Migrate the database to the newest version of the tables, each version in one transaction."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from standards_mcp import ApiError, InvalidInputError
from standards_mcp.commands import upgrade_command

from .audit import FIRST_HASH, hash_of
from .database import Store
from .primitives import compact_json, sha256
from .records import Event, Resume
from .tables import scan

_VERSION_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS schema_version (
        version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) PRIMARY KEY NOT NULL);
    DELETE FROM alembic_version;
"""
"""The table `alembic_version` is for other programs that may read it."""
# The files ``migrations/<version>.sql``. A file that has been released never changes: a change of
# the tables is a new version.
VERSIONS: Final = (1, 2, 3, 4, 10)
LATEST: Final = VERSIONS[-1]
_FIRST_PLUGIN_VERSION: Final = 10


def open_store(path: Path | None = None) -> Store:
    """Open a database and bring it to the newest version.

    Raises:
        ApiError: The database cannot be opened or migrated.
    """
    store = Store(path)
    try:
        migrate(store)
    except BaseException:
        store.close()
        raise
    return store


def migrate(store: Store, to: int = LATEST) -> tuple[int, int]:
    """Apply the missing versions, and return the versions before and after.

    Raises:
        ApiError: The database fails, or its version is unknown to this plugin.
        InvalidInputError: The version *to* does not exist, or the database is already newer.
    """
    versions = ", ".join(map(str, VERSIONS))
    if to not in VERSIONS:
        raise InvalidInputError(f"There is no version {to}; the versions are {versions}.")
    with store.reading() as connection:
        before = version_of(connection)
    if before not in (0, *VERSIONS):
        raise ApiError(
            f"The database has version {before} and was left as it is: this plugin reads the "
            f"versions {versions}. Run `{upgrade_command('standards-mcp-career')}`, or name "
            "another file in plugins.career.db."
        )
    if before > to:
        raise InvalidInputError(f"The database has version {before}; it cannot go back to {to}.")
    for version in VERSIONS:
        if before < version <= to:
            with store.writing() as connection:
                # Inside of the transaction: another process may have migrated meanwhile.
                if version_of(connection) < version:
                    _apply(connection, version)
    return before, to


def version_of(connection: Connection) -> int:
    """Return the newest applied version, 0 for an empty database."""
    if not connection.execute("PRAGMA table_info(schema_version)").fetchall():
        return 0
    (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return version or 0


def _apply(connection: Connection, version: int) -> None:
    _execute(connection, _script(f"{version:04}"))
    if version == _FIRST_PLUGIN_VERSION:
        _chain_events(connection)
        _hash_resumes(connection)
    _execute(connection, _VERSION_TABLES)
    connection.execute("INSERT INTO alembic_version VALUES (?)", (f"{version:04}",))
    connection.execute(
        "INSERT INTO schema_version (version, applied_at) "
        "VALUES (?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))",
        (version,),
    )


def _execute(connection: Connection, script: str) -> None:
    """Run the statements of a script in the transaction, which `executescript` would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _script(name: str) -> str:
    return files("standards_mcp_career").joinpath("migrations", f"{name}.sql").read_text("utf-8")


def _chain_events(connection: Connection) -> None:
    """Add hashes to all audit events, and make the table append-only."""
    events = list(scan(connection, Event))
    rowids = connection.execute("SELECT rowid FROM audit_events ORDER BY trace_id, idx, rowid")
    previous, idx, trace_id = FIRST_HASH, 0, ""
    for (rowid,), event in zip(rowids.fetchall(), events, strict=True):
        if event.trace_id != trace_id:
            previous, idx, trace_id = FIRST_HASH, 0, event.trace_id
        event_hash = hash_of(replace(event, previous_hash=previous))
        connection.execute(
            "UPDATE audit_events SET idx = ?, entity_ids_json = ?, previous_hash = ?, "
            "event_hash = ? WHERE rowid = ?",
            (idx, compact_json(event.refs), previous, event_hash, rowid),
        )
        previous, idx = event_hash, idx + 1
    _execute(connection, _script("append_only"))


def _hash_resumes(connection: Connection) -> None:
    """Replace the hashes of resumes by SHA-256. If texts are equal, only the oldest gets it."""
    for resume in sorted(scan(connection, Resume), key=lambda resume: resume.created_at):
        connection.execute(
            "UPDATE OR IGNORE resumes SET resume_hash = ? WHERE resume_id = ?",
            (f"sha256:{sha256(resume.markdown)}", resume.resume_id),
        )
