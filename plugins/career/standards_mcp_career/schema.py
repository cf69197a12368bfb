"""Migrate the database to the newest version of the tables, each version in one transaction."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from standards_mcp import ApiError, InvalidInputError
from standards_mcp.commands import upgrade_command

from .addresses import PostgresAddress
from .audit import FIRST_HASH, hash_of
from .database import Connection, Store
from .primitives import compact_json, sha256, utc_now
from .records import Event, Resume
from .sqlite import SqliteStore
from .tables import scan

_VERSION_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS schema_version (
        version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL
    )
"""
_ALEMBIC_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) PRIMARY KEY NOT NULL);
    DELETE FROM alembic_version;
"""
"""For other programs that may read the file."""
# The files ``<version>.sql`` of ``migrations``, or of ``migrations/postgres``. A file that has been
# released never changes: a change of the tables is a new version.
VERSIONS: Final = (1, 2, 3, 4, 10)
LATEST: Final = VERSIONS[-1]
_FIRST_PLUGIN_VERSION: Final = 10


def new_store(database: Path | PostgresAddress | None = None) -> Store:
    """Return a database as it is: a SQLite file, PostgreSQL, or a new one in memory.

    Raises:
        ApiError: The file cannot be created.
    """
    if isinstance(database, PostgresAddress):
        from .postgres import PostgresStore  # noqa: PLC0415  - its driver is an extra

        return PostgresStore(database)
    return SqliteStore(database)


def open_store(database: Path | PostgresAddress | None = None) -> Store:
    """Open a database and bring it to the newest version.

    Raises:
        ApiError: The database cannot be opened or migrated.
    """
    store = new_store(database)
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
    known_versions = [version for version in VERSIONS if version >= store.first_version]
    versions = ", ".join(map(str, known_versions))
    if to not in known_versions:
        raise InvalidInputError(f"There is no version {to}; the versions are {versions}.")
    with store.reading() as connection:
        before = version_of(connection)
    if before not in (0, *known_versions):
        raise ApiError(
            f"The database has version {before} and was left as it is: this plugin reads the "
            f"versions {versions}. Run `{upgrade_command('standards-mcp-career')}`, or name "
            f"another database in {store.key}."
        )
    if before > to:
        raise InvalidInputError(f"The database has version {before}; it cannot go back to {to}.")
    for version in known_versions:
        if before < version <= to:
            with store.writing() as connection:
                # Inside of the transaction: another process may have migrated meanwhile.
                if version_of(connection) < version:
                    _apply(store, connection, version)
    return before, to


def version_of(connection: Connection) -> int:
    """Return the newest applied version, 0 for an empty database."""
    if not connection.has_table("schema_version"):
        return 0
    (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return version or 0


def _apply(store: Store, connection: Connection, version: int) -> None:
    if isinstance(store, SqliteStore):
        connection.run_script(_script(f"{version:04}.sql"))
        if version == _FIRST_PLUGIN_VERSION:
            _chain_events(connection)
            _hash_resumes(connection)
        connection.run_script(_ALEMBIC_TABLE)
        connection.execute("INSERT INTO alembic_version VALUES (?)", (f"{version:04}",))
    else:
        connection.run_script(_script(f"postgres/{version:04}.sql"))
    connection.execute(_VERSION_TABLE)
    row = (version, utc_now())
    connection.execute("INSERT INTO schema_version (version, applied_at) VALUES (?, ?)", row)


def _script(name: str) -> str:
    return files("standards_mcp_career").joinpath("migrations", name).read_text("utf-8")


def _chain_events(connection: Connection) -> None:
    """Number all audit events, add their hashes, and make the table append-only."""
    rows = connection.execute(
        "SELECT row_number() OVER (PARTITION BY trace_id ORDER BY idx, rowid) - 1, rowid "
        "FROM audit_events ORDER BY trace_id, idx, rowid"
    ).fetchall()
    connection.executemany("UPDATE audit_events SET idx = ? WHERE rowid = ?", rows)
    previous = FIRST_HASH
    for (idx, rowid), event in zip(rows, list(scan(connection, Event)), strict=True):
        chained = replace(event, previous_hash=previous if idx else FIRST_HASH)
        previous = hash_of(chained)
        connection.execute(
            "UPDATE audit_events SET entity_ids_json = ?, previous_hash = ?, event_hash = ? "
            "WHERE rowid = ?",
            (compact_json(event.refs), chained.previous_hash, previous, rowid),
        )
    connection.run_script(_script("append_only.sql"))


def _hash_resumes(connection: Connection) -> None:
    """Replace the hashes of resumes by SHA-256. If texts are equal, only the oldest gets it."""
    for resume in sorted(scan(connection, Resume), key=lambda resume: resume.created_at):
        connection.execute(
            "UPDATE OR IGNORE resumes SET resume_hash = ? WHERE resume_id = ?",
            (f"sha256:{sha256(resume.markdown)}", resume.resume_id),
        )
