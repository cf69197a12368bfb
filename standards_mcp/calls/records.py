"""The record of each call, for logs, metrics, audits and lists of running calls."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from standards_mcp._utils.logs import STANDARD_FIELDS

from .context import LOCAL

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class CallRecord:
    """One call, from its start to its end.

    Attributes:
        kind: ``tool``, ``prompt``, ``resource``, ``completion``, ``subscription`` or ``route``.
        name: The declared name of the tool, prompt or resource.
        caller: The caller's name.
        arguments: As the client sent them; they may be private.
        seconds: How long it took; 0 while it runs.
        outcome: ``running``, ``ok``, ``asked`` where the client must ask its user and call again,
            ``cancelled``, or the type of the error.
        results: How many results the answer has, if it is a list of results.
        is_cached: The answer is that of an equal call.
        incident: The id of the crash in the log, or an empty string.
        fields: What the plugin adds to the log line.
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
    fields: Mapping[str, object] = field(default_factory=dict[str, object])


class Observer(Protocol):
    """Receives every call. Both methods run in the event loop, so they must be quick."""

    def call_started(self, record: CallRecord) -> None:
        """Handle the start of a call; the record changes until the end."""
        ...

    def call_ended(self, record: CallRecord) -> None:
        """Handle the end of a call, whatever its outcome."""
        ...


class CallLog:
    """Writes one log line for each call."""

    def call_started(self, record: CallRecord) -> None:
        """Do nothing: the line is written at the end."""

    def call_ended(self, record: CallRecord) -> None:
        """Write the line."""
        own = {key: value for key, value in record.fields.items() if key not in STANDARD_FIELDS}
        fields: dict[str, Any] = own | {
            record.kind: record.name,
            "plugin": record.plugin,
            "duration_ms": round(record.seconds * 1000, 2),
            "outcome": record.outcome,
        }
        if record.caller != LOCAL.name:
            fields["caller"] = record.caller
        if record.results is not None:
            fields["results"] = record.results
        if log.isEnabledFor(logging.DEBUG):
            fields["arguments"] = dict(record.arguments)
        log.info("%s call", record.kind, extra=fields)
