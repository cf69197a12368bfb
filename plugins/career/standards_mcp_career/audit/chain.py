"""Events, their hashes, and whether a chain of them is whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

FIRST_HASH: Final = "0" * 64
"""What comes before the first event of a trace."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it is stored.

    Attributes:
        payload: Compact JSON of an object.
        refs: Ids of the records that it is about.
        created_at: UTC, as 2026-01-01T00:00:00Z.
        previous_hash: The hash of the event before it in the trace, else `FIRST_HASH`.
        event_hash: What `hash_of` gives, 64 hexadecimal digits.
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
    """Whether a chain is whole.

    Attributes:
        first_invalid_index: The place of the first bad event, from 0; the number of events if
            none is bad.
        error: What is wrong with it; empty if nothing is.
    """

    valid: bool
    first_invalid_index: int
    error: str


def compact(value: object) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, not escaped to ASCII.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    )


def hash_of(event: Event) -> str:
    """Return the hash that an event must have."""
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
    """Tell whether the events of one trace, in order, are what was written."""
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
