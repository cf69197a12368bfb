"""Brings a database to a version: one version in one transaction, whoever comes first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, insert, inspect, select, text

from standards_mcp import ApiError, InvalidInputError
from standards_mcp.commands import upgrade_command

from .database import Store
from .migrations.versions import UPGRADES
from .tables import schema_version

LATEST: Final = len(UPGRADES)
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_NOW: Final = func.strftime("%Y-%m-%dT%H:%M:%SZ", "now")
_CREATE: Final = text(
    "CREATE TABLE IF NOT EXISTS schema_version "
    "(version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class Migrated:
    """From which version to which a database has come."""

    before: int
    after: int


def migrate(store: Store, to: int = LATEST) -> Migrated:
    """Apply the versions that are missing.

    Raises:
        ApiError: The database fails, or a newer plugin has made it.
        InvalidInputError: There is no such version, or the database is beyond it.
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
    scripts = ScriptDirectory(str(_MIGRATIONS))
    while after < to:
        after = _step(store, scripts)
    return Migrated(before, after)


def version_of(connection: Connection) -> int:
    """Return the newest version that was applied, 0 if none was."""
    if not inspect(connection).has_table(schema_version.name):
        return 0
    return connection.scalar(select(func.max(schema_version.c.version))) or 0


def _step(store: Store, scripts: ScriptDirectory) -> int:
    """Apply the next version, whichever that is once this process alone may write."""
    with store.writing() as connection:
        after = version_of(connection) + 1
        if after > LATEST:
            return LATEST
        context = MigrationContext.configure(connection)
        with Operations.context(context):
            UPGRADES[after - 1]()
        # Databases of the original have versions, and learn of Alembic here.
        context.stamp(scripts, f"{after:04}")
        connection.execute(_CREATE)
        connection.execute(insert(schema_version).values(version=after, applied_at=_NOW))
        return after
