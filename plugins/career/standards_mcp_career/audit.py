"""The audit log: append-only events in one hash chain for each trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError, NotFoundError

from .answers import AuditEvent, TraceAnswer
from .database import Connection, Store
from .primitives import Clock, NewId, compact_json, sha256, time_id, utc_now
from .records import Event
from .tables import insert, parse_object, scan

FIRST_HASH: Final = "0" * 64
"""The previous hash of the first event of a trace."""


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
    return sha256(compact_json(hashed) + event.previous_hash)


def verify_all(events: Iterable[Event]) -> Verification:
    """Verify the chain of each trace.

    Args:
        events: Events grouped by trace, in order.
    """
    traces = list[TraceVerdict]()
    for trace_id, chain in groupby(events, key=attrgetter("trace_id")):
        previous, index, error = FIRST_HASH, 0, ""
        for event in chain:
            if event.previous_hash != previous:
                error = f"previous_hash mismatch at index {index}"
            elif event.event_hash != hash_of(event):
                error = f"event_hash mismatch at index {index}"
            if error:
                break
            previous, index = event.event_hash, index + 1
        traces.append(
            {
                "trace_id": trace_id,
                "valid": not error,
                "first_invalid_index": index,
                "error": error,
            }
        )
    return {"valid": all(trace["valid"] for trace in traces), "traces": traces}


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
        last = connection.execute(
            "SELECT idx, event_hash FROM audit_events WHERE trace_id = ? ORDER BY idx DESC LIMIT 1",
            (trace_id,),
        ).fetchone()
        start, previous = (last[0] + 1, last[1]) if last else (0, FIRST_HASH)
        rows = list[dict[str, Any]]()
        for idx, (event_type, payload, refs) in enumerate(entries, start):
            event = Event(
                self.new_id("evt"),
                trace_id,
                event_type,
                compact_json(payload),
                self.now(),
                tuple(refs),
                previous,
            )
            previous = hash_of(event)
            rows.append({**asdict(replace(event, event_hash=previous)), "idx": idx})
        insert(connection, "audit_events", rows)

    def page(self, trace_id: str, offset: int = 0, limit: int = 200) -> TraceAnswer:
        """Return a page of a trace's events; an unknown trace has none.

        Args:
            limit: Maximum number of events, `ALL_ROWS` for all.
        """
        events = list[AuditEvent]()
        with self.store.reading() as connection:
            query = "SELECT count(*) FROM audit_events WHERE trace_id = ?"
            (total,) = connection.execute(query, (trace_id,)).fetchone()
            for event in scan(connection, Event, trace_id, page=(limit, offset)):
                payload = parse_object(event.payload)
                events.append(
                    {
                        "event_id": event.event_id,
                        "trace_id": event.trace_id,
                        "event_type": event.event_type,
                        # The original program joined texts to JSON; a quote made it invalid.
                        "payload": payload
                        if isinstance(payload, dict)
                        else {"text": event.payload},
                        "created_at": event.created_at,
                        "refs": list(event.refs),
                    }
                )
        return {"trace_id": trace_id, "total": total, "events": events}

    def events(self, trace_id: str | None = None) -> Iterator[Event]:
        """Yield the events of one trace or of all, grouped by trace."""
        with self.store.reading() as connection:
            yield from scan(connection, Event, trace_id)

    def verify(self, trace_id: str | None = None) -> Verification:
        """Verify the chain of one trace, or of all.

        Raises:
            NotFoundError: The trace has no events.
        """
        verification = verify_all(self.events(trace_id))
        if trace_id is not None and not verification["traces"]:
            raise NotFoundError(f"Trace not found: {trace_id}")
        return verification
