"""Index runs and their entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, Integer, cast, func, insert, select, update

from .database import record_of
from .tables import index_entries, index_runs

Status: TypeAlias = Literal["pending", "running", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the index.

    Attributes:
        run_id: ``run-`` and its number.
        started_at: UTC, as 2026-01-01T00:00:00Z.
        summary: Counts, as JSON data.
    """

    run_id: str
    started_at: str | None
    completed_at: str | None
    provider_id: str
    model_id: str
    prompt_version: str
    status: Status
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """An artifact that a run has indexed.

    Attributes:
        stale: True if the text has changed since the previous run.
    """

    artifact_type: str
    artifact_id: str
    source_hash: str
    vector_hash: str
    indexed_at: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class Source:
    """The encoder of a run. Only runs with the same source are compared."""

    provider_id: str
    model_id: str
    prompt_version: str


_NUMBER = cast(func.substr(index_runs.c.run_id, len("run-") + 1), Integer)
"""Orders the runs. Their times do not, because clocks may go back."""


def start(connection: Connection, run: Run) -> None:
    """Store a new run."""
    connection.execute(insert(index_runs).values(asdict(run)))


def set_status(
    connection: Connection,
    run_id: str,
    status: Status,
    summary: Mapping[str, Any] | None = None,
    completed_at: str | None = None,
) -> None:
    """Set the status of a run, and its summary at the end."""
    values: dict[str, Any] = {"status": status}
    if summary is not None:
        values["summary"] = dict(summary)
    if completed_at is not None:
        values["completed_at"] = completed_at
    connection.execute(update(index_runs).where(index_runs.c.run_id == run_id).values(values))


def fail_running(connection: Connection) -> list[str]:
    """Mark unfinished runs as failed, and return their ids."""
    unfinished = index_runs.c.status.in_(["pending", "running"])
    failed = update(index_runs).where(unfinished).values(status="failed")
    return list(connection.scalars(failed.returning(index_runs.c.run_id)))


def add_entries(connection: Connection, run_id: str, entries: Sequence[Entry]) -> None:
    """Store the entries of a run."""
    if entries:
        rows = [{"run_id": run_id, **asdict(entry)} for entry in entries]
        connection.execute(insert(index_entries), rows)


def get(connection: Connection, run_id: str) -> Run | None:
    """Return a run, None for an unknown id."""
    row = connection.execute(select(index_runs).where(index_runs.c.run_id == run_id)).first()
    return None if row is None else record_of(Run, row)


def read_all(connection: Connection) -> list[Run]:
    """Return all runs, the oldest first."""
    return [record_of(Run, row) for row in connection.execute(select(index_runs).order_by(_NUMBER))]


def entries(connection: Connection, run_id: str) -> list[Entry]:
    """Return the entries of a run, by type and id."""
    wanted = select(index_entries).where(index_entries.c.run_id == run_id)
    ordered = wanted.order_by(index_entries.c.artifact_type, index_entries.c.artifact_id)
    return [record_of(Entry, row) for row in connection.execute(ordered)]


def latest(connection: Connection, artifact_type: str, source: Source) -> dict[str, Entry]:
    """Return the newest entry of each artifact in completed runs, by artifact id."""
    wanted = (
        # With max(), SQLite returns the other columns of the row with the maximum.
        select(index_entries, func.max(_NUMBER))
        .join(index_runs)
        .where(
            index_entries.c.artifact_type == artifact_type,
            index_runs.c.status == "completed",
            index_runs.c.provider_id == source.provider_id,
            index_runs.c.model_id == source.model_id,
            index_runs.c.prompt_version == source.prompt_version,
        )
        .group_by(index_entries.c.artifact_id)
    )
    return {row.artifact_id: record_of(Entry, row) for row in connection.execute(wanted)}
