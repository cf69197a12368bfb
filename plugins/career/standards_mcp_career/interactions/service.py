"""Applies events to interactions, and writes down what became of them."""

from __future__ import annotations

from standards_mcp_career.answers import EventAnswer
from standards_mcp_career.audit.log import AuditLog
from standards_mcp_career.domain.ids import Ids
from standards_mcp_career.domain.transitions import Event

from .coordinator import Coordinator


class Interactions:
    """Tells a coordinator of events, and the audit log of both."""

    def __init__(self, coordinator: Coordinator, audit: AuditLog, ids: Ids) -> None:
        self._coordinator = coordinator
        self._audit = audit
        self._ids = ids

    def apply_event(
        self, interaction_id: str, event: Event, idempotency_key: str, trace_id: str | None = None
    ) -> EventAnswer:
        """Apply an event to an interaction, once for each key.

        Raises:
            ApiError: The database fails.
        """
        drawn = self._ids.new("trace")
        trace_id = trace_id or drawn
        refs = [interaction_id]
        attempted = {
            "interaction_id": interaction_id,
            "event": event,
            "idempotency_key": idempotency_key,
        }
        self._audit.append(trace_id, "InteractionTransitionAttempted", attempted, refs)
        outcome = self._coordinator.apply(interaction_id, event, idempotency_key)
        is_done = outcome.name in ("applied", "already_applied")
        ended = f"InteractionTransition{'Completed' if is_done else 'Rejected'}"
        told = {"outcome": outcome.name, "transition_index": outcome.index}
        self._audit.append(trace_id, ended, told, refs)
        return {
            "trace_id": trace_id,
            "result": {
                "outcome": outcome.name,
                "before_state": outcome.before_state,
                "after_state": outcome.after_state,
                "transition_index": outcome.index,
                "error_message": outcome.message,
            },
        }
