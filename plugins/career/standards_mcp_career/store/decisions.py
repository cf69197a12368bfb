"""Repository of match decisions, stored as they were answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, true

from .tables import decision_records


def add(connection: Connection, decision: Mapping[str, Any]) -> None:
    """Insert a decision, which has a ``decision_id`` and a ``trace_id``."""
    row = {name: decision[name] for name in ("decision_id", "trace_id")}
    connection.execute(insert(decision_records).values(**row, decision_json=dict(decision)))


def get(connection: Connection, decision_id: str) -> dict[str, Any] | None:
    """Return a decision, None for an unknown id."""
    found = _read(connection, decision_records.c.decision_id == decision_id)
    return found[0] if found else None


def of_trace(connection: Connection, trace_id: str) -> list[dict[str, Any]]:
    """Return the decisions of a trace, the oldest first."""
    return _read(connection, decision_records.c.trace_id == trace_id)


def read_all(connection: Connection) -> list[dict[str, Any]]:
    """Return all decisions, the oldest first."""
    return _read(connection, true())


def _read(connection: Connection, condition: ColumnElement[bool]) -> list[dict[str, Any]]:
    wanted = select(decision_records.c.decision_json).where(condition)
    return list(connection.scalars(wanted.order_by(decision_records.c.number)))
