"""The kinds of records that commands list and show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from sqlalchemy import Connection

from standards_mcp_career.domain.transitions import STATES
from standards_mcp_career.store import (
    atoms,
    decisions,
    interactions,
    opportunities,
    resumes,
    runs,
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of records.

    Attributes:
        singular: What one is called at the beginning of a sentence.
        line: Makes a line of one.
    """

    singular: str
    read_all: Callable[[Connection], Sequence[Any]]
    get: Callable[[Connection, str], Any]
    line: Callable[[Row], str]

    def rows(self, connection: Connection) -> list[Row]:
        """Return all records, without what is long."""
        rows = [_row(record) for record in self.read_all(connection)]
        for row in rows:
            row.pop("markdown", None)
        return rows

    def row(self, connection: Connection, identifier: str) -> Row | None:
        """Return one record with all that it has."""
        record = self.get(connection, identifier)
        if record is None:
            return None
        return {**_row(record), **_entries(connection, record)}


def _atom(row: Row) -> str:
    verified = "" if row["verified"] else " (not verified)"
    return f"{row['atom_id']}: {row['title'] or row['claim']}{verified}"


def _interaction(row: Row) -> str:
    known = dict(enumerate(STATES))
    state = known.get(row["state"], row["state"])
    return f"{row['interaction_id']}: {state}, {row['opportunity_id']}"


def _entries(connection: Connection, record: object) -> Row:
    if not isinstance(record, runs.Run):
        return {}
    entries = [asdict(entry) for entry in runs.entries(connection, record.run_id)]
    names = ("artifact_type", "artifact_id", "source_hash", "vector_hash", "stale")
    return {"entries": [{name: entry[name] for name in names} for entry in entries]}


def _row(record: Any) -> Row:
    return dict(cast("Row", record)) if isinstance(record, dict) else asdict(record)


KINDS: Final[Mapping[str, Kind]] = {
    "atoms": Kind("Atom", atoms.read_all, atoms.get, _atom),
    "opportunities": Kind(
        "Opportunity",
        opportunities.read_all,
        opportunities.get,
        lambda row: f"{row['opportunity_id']}: {row['role_title']}, {row['company']}",
    ),
    "interactions": Kind(
        "Interaction",
        interactions.read_all,
        interactions.get,
        _interaction,
    ),
    "resumes": Kind(
        "Resume",
        resumes.read_all,
        resumes.get,
        lambda row: f"{row['resume_id']}: {row['created_at']}",
    ),
    "runs": Kind("Run", runs.read_all, runs.get, lambda row: f"{row['run_id']}: {row['status']}"),
    "decisions": Kind(
        "Decision",
        decisions.read_all,
        decisions.get,
        lambda row: f"{row['decision_id']}: {row['opportunity_id']}",
    ),
}
