"""Counters that outlive a process."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from .tables import id_counters


def next_number(connection: Connection, name: str) -> int:
    """Return 0 for a new counter, and each time one more."""
    first = insert(id_counters).values(name=name, value=0)
    counted = first.on_conflict_do_update(
        index_elements=["name"], set_={"value": id_counters.c.value + 1}
    )
    number: int = connection.execute(counted.returning(id_counters.c.value)).scalar_one()
    return number


def current(connection: Connection, name: str) -> int:
    """Return the last number that was given, -1 if none was."""
    value = select(id_counters.c.value).where(id_counters.c.name == name)
    found = connection.scalar(value)
    return -1 if found is None else found
