"""The audit log: append-only events in one hash chain for each trace."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import attrgetter
from sqlite3 import Connection, Row
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError, NotFoundError

from .answers import AuditEvent, TraceAnswer
from .database import Store, stored_object
from .primitives import Clock, NewId, compact_json, parse_texts, time_id, utc_now

FIRST_HASH: Final = "0" * 64
"""The previous hash of the first event of a trace."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it is stored.

    Attributes:
        payload: Compact JSON of an object.
        refs: Ids of related records.
        created_at: UTC, as 2026-01-01T00:00:00Z.
        previous_hash: The hash of the preceding event in the trace, or `FIRST_HASH`.
        event_hash: The result of `hash_of`, 64 hexadecimal digits.
    """

    event_id: str
    trace_id: str
    event_type: str
    payload: str
    created_at: str
    refs: tuple[str, ...]
    previous_hash: str = ""
    event_hash: str = ""


class Entry(NamedTuple):
    """A new event.

    Attributes:
        payload: JSON data, without the text of a resume.
        refs: Ids of related records.
    """

    event_type: str
    payload: Mapping[str, Any]
    refs: Sequence[str] = ()


class TraceVerdict(TypedDict):
    """The result of verifying one trace.

    Attributes:
        first_invalid_index: Index of the first bad event, else the number of events.
        error: The mismatch, "" for a valid trace.
    """

    trace_id: str
    valid: bool
    first_invalid_index: int
    error: str


class Verification(TypedDict):
    """The result of verifying all chains."""

    valid: bool
    traces: list[TraceVerdict]


def hash_of(event: Event) -> str:
    """Return the correct hash of an event."""
    # These fields and no others: another one would change the hashes of all stored events.
    names = ("event_id", "trace_id", "event_type", "payload", "created_at", "refs")
    hashed = {name: getattr(event, name) for name in names}
    return hashlib.sha256((compact_json(hashed) + event.previous_hash).encode()).hexdigest()


def verify_all(events: Iterable[Event]) -> Verification:
    """Verify the chain of each trace.

    Args:
        events: Events grouped by trace, in order.
    """
    chains = groupby(events, key=attrgetter("trace_id"))
    traces = [_verify(trace_id, chain) for trace_id, chain in chains]
    return {"valid": all(trace["valid"] for trace in traces), "traces": traces}


def _verify(trace_id: str, chain: Iterable[Event]) -> TraceVerdict:
    previous, index, error = FIRST_HASH, 0, ""
    for event in chain:
        if event.previous_hash != previous:
            error = f"previous_hash mismatch at index {index}"
        elif event.event_hash != hash_of(event):
            error = f"event_hash mismatch at index {index}"
        if error:
            break
        previous, index = event.event_hash, index + 1
    return {
        "trace_id": trace_id,
        "valid": not error,
        "first_invalid_index": index,
        "error": error,
    }


_EVENT: Final = TypeAdapter(Event)


def export_line(event: Event) -> str:
    """Return an event as a line of an export, without line end."""
    return compact_json(asdict(event))


def read_lines(lines: Iterable[bytes]) -> Iterator[Event]:
    """Parse the events of an export.

    Raises:
        InvalidInputError: A line is not an event.
    """
    for number, line in enumerate(lines, 1):
        try:
            event = _EVENT.validate_json(line, strict=True)
        except ValidationError as error:
            raise InvalidInputError(f"Line {number} is not an event of an export.") from error
        yield event


def event_of(row: Row) -> Event:
    """Convert a stored row to an event. Other programs may have stored other types."""
    return Event(
        event_id=str(row["event_id"]),
        trace_id=str(row["trace_id"]),
        event_type=str(row["event_type"]),
        payload=str(row["payload"]),
        created_at=str(row["created_at"]),
        refs=parse_texts(row["entity_ids_json"]),
        previous_hash=str(row["previous_hash"]),
        event_hash=str(row["event_hash"]),
    )


class AuditLog:
    """Writes and reads events. Every method may raise `ApiError`.

    Attributes:
        store: The database.
        new_id: Makes the ids of traces, events and records.
        now: The clock.
    """

    def __init__(self, store: Store, new_id: NewId = time_id, now: Clock = utc_now) -> None:
        self.store, self.new_id, self.now = store, new_id, now

    def trace(self, trace_id: str | None) -> str:
        """Return the trace id of a call: *trace_id*, or a new id without one."""
        new = self.new_id("trace")  # always drawn, so that other ids do not depend on *trace_id*
        return trace_id or new

    def append(
        self, trace_id: str, event_type: str, payload: Mapping[str, Any], refs: Sequence[str] = ()
    ) -> None:
        """Write one event."""
        with self.store.writing() as connection:
            self.write(connection, trace_id, [Entry(event_type, payload, refs)])

    def write(self, connection: Connection, trace_id: str, entries: Iterable[Entry]) -> None:
        """Write events in the transaction of the change that they record."""
        idx, previous = _chain_end(connection, trace_id)
        for number, entry in enumerate(entries, idx):
            event = Event(
                event_id=self.new_id("evt"),
                trace_id=trace_id,
                event_type=entry.event_type,
                payload=compact_json(entry.payload),
                created_at=self.now(),
                refs=tuple(entry.refs),
                previous_hash=previous,
            )
            event = replace(event, event_hash=hash_of(event))
            connection.execute(
                "INSERT INTO audit_events (event_id, trace_id, event_type, payload, created_at, "
                "entity_ids_json, idx, previous_hash, event_hash) VALUES (:event_id, :trace_id, "
                ":event_type, :payload, :created_at, :refs, :idx, :previous_hash, :event_hash)",
                {**asdict(event), "refs": compact_json(event.refs), "idx": number},
            )
            previous = event.event_hash

    def page(self, trace_id: str, offset: int = 0, limit: int = 200) -> TraceAnswer:
        """Return a page of a trace's events; an unknown trace has none."""
        with self.store.reading() as connection:
            (total,) = connection.execute(
                "SELECT count(*) FROM audit_events WHERE trace_id = ?", (trace_id,)
            ).fetchone()
            rows = connection.execute(
                "SELECT * FROM audit_events WHERE trace_id = ? ORDER BY idx LIMIT ? OFFSET ?",
                (trace_id, limit, offset),
            ).fetchall()
        events = [_answer_of(event_of(row)) for row in rows]
        return {"trace_id": trace_id, "total": total, "events": events}

    def events(self, trace_id: str | None = None) -> Iterator[Event]:
        """Yield the events of one trace or of all, grouped by trace."""
        condition = "" if trace_id is None else "WHERE trace_id = ?"
        with self.store.reading() as connection:
            rows = connection.execute(
                f"SELECT * FROM audit_events {condition} ORDER BY trace_id, idx",  # noqa: S608
                () if trace_id is None else (trace_id,),
            )
            yield from map(event_of, rows)

    def verify(self, trace_id: str | None = None) -> Verification:
        """Verify the chain of one trace, or of all.

        Raises:
            NotFoundError: The trace has no events.
        """
        verification = verify_all(self.events(trace_id))
        if trace_id is not None and not verification["traces"]:
            raise NotFoundError(f"Trace not found: {trace_id}")
        return verification


def _chain_end(connection: Connection, trace_id: str) -> tuple[int, str]:
    """Return the index of a trace's next event, and the hash of its last event."""
    last = connection.execute(
        "SELECT idx, event_hash FROM audit_events WHERE trace_id = ? ORDER BY idx DESC LIMIT 1",
        (trace_id,),
    ).fetchone()
    return (0, FIRST_HASH) if last is None else (last["idx"] + 1, last["event_hash"])


def _answer_of(event: Event) -> AuditEvent:
    payload = stored_object(event.payload)
    return {
        "event_id": event.event_id,
        "trace_id": event.trace_id,
        "event_type": event.event_type,
        # The original program concatenated texts to JSON, so a quote made a payload invalid.
        "payload": payload if isinstance(payload, dict) else {"text": event.payload},
        "created_at": event.created_at,
        "refs": list(event.refs),
    }
