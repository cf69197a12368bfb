"""What the tools answer. It is apart from what answers them, which takes long to import."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from .interactions.transitions import OutcomeName


class AuditEvent(TypedDict):
    """An event of the audit log.

    Attributes:
        refs: Ids of the records that it is about.
    """

    event_id: str
    trace_id: str
    event_type: str
    payload: dict[str, Any]
    created_at: str
    refs: list[str]


class TraceAnswer(TypedDict):
    """A part of a trace's events, in the order of writing.

    Attributes:
        total: How many events the trace has.
    """

    trace_id: str
    total: int
    events: list[AuditEvent]


class OutcomeAnswer(TypedDict):
    """What became of an event. States are 0 Draft, 1 Ready, 2 Sent, 3 Responded, 4 Closed."""

    outcome: OutcomeName
    before_state: int
    after_state: int
    transition_index: int
    error_message: str


class EventAnswer(TypedDict):
    """The answer of `interaction_apply_event`."""

    trace_id: str
    result: OutcomeAnswer


class IngestAnswer(TypedDict):
    """The answer of `ingest_resume`.

    Attributes:
        resume_hash: ``sha256:`` and the hash of the normalised Markdown.
        source_hash: FNV-1a of the same.
        stored: It was not there before, and is now.
    """

    resume_id: str
    resume_hash: str
    source_hash: str
    stored: bool
    trace_id: str
