"""What observers learn of each call: for logs, metrics, audits and lists of running calls."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class CallRecord:
    """One call, from its start to its end.

    Attributes:
        kind: ``tool``, ``prompt``, ``resource`` or ``completion``.
        name: The declared name of what is called.
        caller: The name of who calls.
        arguments: As the client sent them; they may be private.
        seconds: How long it took; 0 while it runs.
        outcome: ``running``, ``ok``, ``asked`` where the client must ask its user and call again,
            ``cancelled``, or the type of the error.
        results: How many results the answer has, where it is a list of them.
        is_cached: The answer was kept from an earlier call.
        incident: The id under which the log has what crashed, or an empty string.
    """

    kind: str
    name: str
    plugin: str
    caller: str
    arguments: Mapping[str, Any]
    seconds: float = 0.0
    outcome: str = "running"
    results: int | None = None
    is_cached: bool = False
    incident: str = ""


class Observer(Protocol):
    """Is told of every call. Both methods run in the event loop, so they must be quick."""

    def call_started(self, record: CallRecord) -> None:
        """Take note of a call that begins; the record changes until its end."""
        ...

    def call_ended(self, record: CallRecord) -> None:
        """Take note of a call that has ended, whatever its outcome."""
        ...


class CallLog:
    """Writes one log line for each call."""

    def call_started(self, record: CallRecord) -> None:
        """Do nothing: the line is written at the end."""

    def call_ended(self, record: CallRecord) -> None:
        """Write the line."""
        fields: dict[str, Any] = {
            record.kind: record.name,
            "plugin": record.plugin,
            "duration_ms": round(record.seconds * 1000, 2),
            "outcome": record.outcome,
        }
        if record.results is not None:
            fields["results"] = record.results
        if log.isEnabledFor(logging.DEBUG):
            fields["arguments"] = dict(record.arguments)
        log.info("%s call", record.kind, extra=fields)
