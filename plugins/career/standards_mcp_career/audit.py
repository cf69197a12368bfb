"""The audit log: append-only events in one hash chain for each trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Row, func, insert, select
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError, NotFoundError

from .primitives import Clock, Ids, listed
from .schemas import AuditEvent, TraceAnswer
from .store.database import Store
from .store.tables import audit_events

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
    previous_hash: str
    event_hash: str


class Verdict(NamedTuple):
    """The result of verifying a chain.

    Attributes:
        first_invalid_index: Index of the first bad event, else the number of events.
        error: The mismatch, else empty.
    """

    valid: bool
    first_invalid_index: int
    error: str


def compact(value: object) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, no ASCII escapes.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def hash_of(event: Event) -> str:
    """Return the correct hash of an event."""
    hashed: Mapping[str, object] = {
        "created_at": event.created_at,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "payload": event.payload,
        "refs": event.refs,
        "trace_id": event.trace_id,
    }
    return hashlib.sha256((compact(hashed) + event.previous_hash).encode()).hexdigest()


def verify(events: Iterable[Event]) -> Verdict:
    """Verify the events of one trace, in order."""
    expected, count = FIRST_HASH, 0
    for index, event in enumerate(events):
        if event.previous_hash != expected:
            return Verdict(valid=False, first_invalid_index=index, error=_error("previous", index))
        if event.event_hash != hash_of(event):
            return Verdict(valid=False, first_invalid_index=index, error=_error("event", index))
        expected, count = event.event_hash, index + 1
    return Verdict(valid=True, first_invalid_index=count, error="")


def _error(which: str, index: int) -> str:
    return f"{which}_hash mismatch at index {index}"


_EVENT: Final = TypeAdapter(Event)


def line_of(event: Event) -> str:
    """Return an event as a line, without its end."""
    return compact(asdict(event))


def read_lines(lines: Iterable[bytes]) -> Iterator[Event]:
    """Parse the events of an export.

    Raises:
        InvalidInputError: A line is not an event.
    """
    for number, line in enumerate(lines, 1):
        try:
            yield _EVENT.validate_json(line, strict=True)
        except ValidationError as error:
            raise InvalidInputError(f"Line {number} is not an event of an export.") from error


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
    """The result of verifying one trace; see `Verdict`."""

    trace_id: str
    valid: bool
    first_invalid_index: int
    error: str


class Verification(TypedDict):
    """The result of verifying all chains."""

    valid: bool
    traces: list[TraceVerdict]


class AuditLog:
    """Writes and reads events. Every method may raise `ApiError`."""

    def __init__(self, store: Store, ids: Ids, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock

    def append(
        self,
        trace_id: str,
        event_type: str,
        payload: Mapping[str, Any],
        refs: Sequence[str] = (),
    ) -> None:
        """Write one event."""
        self.extend(trace_id, [Entry(event_type, payload, refs)])

    def extend(self, trace_id: str, entries: Iterable[Entry]) -> None:
        """Write events, all or none."""
        with self._store.writing() as connection:
            self.write(connection, trace_id, entries)

    def write(self, connection: Connection, trace_id: str, entries: Iterable[Entry]) -> None:
        """Write events in the transaction of the change that they record."""
        idx, previous_hash = _end_of(connection, trace_id)
        rows: list[dict[str, Any]] = []
        for idx, entry in enumerate(entries, idx):  # noqa: B020 - continue at the index
            event = self._event(trace_id, entry, previous_hash)
            rows.append(_row_of(event, idx))
            previous_hash = event.event_hash
        if rows:
            connection.execute(insert(audit_events), rows)

    def page(self, trace_id: str, offset: int = 0, limit: int = 200) -> TraceAnswer:
        """Return a page of a trace's events, empty for an unknown trace."""
        is_in = audit_events.c.trace_id == trace_id
        wanted = select(audit_events).where(is_in).order_by(audit_events.c.idx)
        with self._store.reading() as connection:
            total = connection.scalar(select(func.count()).where(is_in)) or 0
            rows = connection.execute(wanted.offset(offset).limit(limit)).all()
        events = [_answer_of(_event_of(row)) for row in rows]
        return {"trace_id": trace_id, "total": total, "events": events}

    def events(self, trace_id: str | None = None) -> Iterator[Event]:
        """Yield the events of one trace or of all, grouped by trace."""
        wanted = select(audit_events).order_by(audit_events.c.trace_id, audit_events.c.idx)
        if trace_id is not None:
            wanted = wanted.where(audit_events.c.trace_id == trace_id)
        with self._store.reading() as connection:
            for row in connection.execution_options(yield_per=1000).execute(wanted):
                yield _event_of(row)

    def verify(self, trace_id: str | None = None) -> Verification:
        """Verify the chain of one trace, or of all.

        Raises:
            NotFoundError: The trace has no events.
        """
        verification = verify_all(self.events(trace_id))
        if trace_id is not None and not verification["traces"]:
            raise NotFoundError(f"Trace not found: {trace_id}")
        return verification

    def _event(self, trace_id: str, entry: Entry, previous_hash: str) -> Event:
        event = Event(
            event_id=self._ids.new("evt"),
            trace_id=trace_id,
            event_type=entry.event_type,
            payload=compact(entry.payload),
            created_at=self._clock(),
            refs=tuple(entry.refs),
            previous_hash=previous_hash,
            event_hash="",
        )
        return replace(event, event_hash=hash_of(event))


def verify_all(events: Iterable[Event]) -> Verification:
    """Verify the chain of each trace.

    Args:
        events: Events grouped by trace, in order.
    """
    traces: list[TraceVerdict] = []
    for trace_id, chain in groupby(events, key=lambda event: event.trace_id):
        valid, index, error = verify(chain)
        traces.append(
            {"trace_id": trace_id, "valid": valid, "first_invalid_index": index, "error": error}
        )
    return {"valid": all(each["valid"] for each in traces), "traces": traces}


def _end_of(connection: Connection, trace_id: str) -> tuple[int, str]:
    """Return the place of a trace's next event, and the hash before it."""
    last = connection.execute(
        select(audit_events.c.idx, audit_events.c.event_hash)
        .where(audit_events.c.trace_id == trace_id)
        .order_by(audit_events.c.idx.desc())
        .limit(1)
    ).first()
    return (0, FIRST_HASH) if last is None else (last.idx + 1, last.event_hash)


def _row_of(event: Event, idx: int) -> dict[str, Any]:
    row = asdict(event)
    refs = row.pop("refs")
    return {**row, "entity_ids_json": compact(refs), "idx": idx}


def _event_of(row: Row[Any]) -> Event:
    """Return a stored row as an event. Other programs may have changed the row."""
    return Event(
        event_id=str(row.event_id),
        trace_id=str(row.trace_id),
        event_type=str(row.event_type),
        payload=str(row.payload),
        created_at=str(row.created_at),
        refs=listed(str(row.entity_ids_json)),
        previous_hash=str(row.previous_hash),
        event_hash=str(row.event_hash),
    )


def _answer_of(event: Event) -> AuditEvent:
    try:
        payload: Any = json.loads(event.payload)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        # The original program concatenated texts, so a quote broke its JSON.
        payload = {"text": event.payload}
    return {
        "event_id": event.event_id,
        "trace_id": event.trace_id,
        "event_type": event.event_type,
        "payload": cast("dict[str, Any]", payload),
        "created_at": event.created_at,
        "refs": list(event.refs),
    }
