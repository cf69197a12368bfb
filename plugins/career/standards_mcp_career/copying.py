"""Copy a SQLite database into an empty PostgreSQL database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

from standards_mcp import InvalidInputError

from .addresses import PostgresAddress
from .schema import open_store

_TABLES: Final = (
    "atoms",
    "opportunities",
    "requirements",
    "interactions",
    "interaction_receipts",
    "resumes",
    "resume_meta",
    "resume_token_ir",
    "index_runs",
    "index_entries",
    "decision_records",
    "id_counters",
    "audit_events",
)
"""All tables with data, each after the tables that it refers to."""


def copy_database(file: Path, address: PostgresAddress) -> dict[str, int]:
    """Copy all rows in one transaction, and return their number by table.

    The file is brought to the newest version first.

    Raises:
        ApiError: A database fails.
        InvalidInputError: The file does not exist, a text has a null character, or PostgreSQL has
            records.
    """
    if not file.is_file():
        raise InvalidInputError(f"The database {file} does not exist.")
    counts = dict[str, int]()
    with (
        closing(open_store(file)) as source,
        closing(open_store(address)) as target,
        source.reading() as old,
        target.writing() as new,
    ):
        for table in _TABLES:
            rows = new.execute(f"SELECT * FROM {table} LIMIT 1")  # noqa: S608
            columns = [column for column, *_ in rows.description]
            if rows.fetchone():
                raise InvalidInputError(
                    f"The database of {target.key} has records ({table}). Name an empty one."
                )
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
            new.executemany(
                f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608
                (tuple(map(_as_read, row)) for row in old.stream(f"SELECT {names} FROM {table}")),  # noqa: S608
            )
            (counts[table],) = new.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        new.execute(
            "SELECT setval(pg_get_serial_sequence('decision_records', 'number'), max(number)) "
            "FROM decision_records"
        )
    return counts


def _as_read(value: Any) -> str | int | None:
    # Other programs may have stored bytes, which are read as this text, too.
    return value if isinstance(value, (str, int)) or value is None else str(value)
