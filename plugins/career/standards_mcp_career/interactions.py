"""Apply events to interactions, each in one atomic step, and log them."""

from __future__ import annotations

from typing import Protocol

from standards_mcp import ApiError

from .audit import AuditLog
from .primitives import Ids
from .schemas import EventAnswer
from .store.database import Store
from .store.repositories import add_receipt, move_interaction, position_of, receipt_of
from .transitions import Event, Outcome, Receipt, backend_error, decide, is_sound, not_found


class Coordinator(Protocol):
    """Applies events to interactions, each in one atomic step."""

    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        """Apply an event once for each idempotency key.

        A failing backend is the outcome ``backend_error``.
        """
        ...

    def close(self) -> None:
        """Close the backend."""
        ...


def damaged_row(what: str, interaction_id: str) -> Outcome:
    """Return the outcome for an impossible row of the database."""
    return backend_error(
        f"The database holds a damaged {what} of interaction {interaction_id}, so nothing was "
        "changed. Restore the file of plugins.career.db from a backup."
    )


class SqliteCoordinator:
    """Decide in a transaction of the database, which may be in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        """See `Coordinator.apply`."""
        try:
            with self._store.writing() as connection:
                now = position_of(connection, interaction_id)
                if now is None:
                    return not_found(interaction_id)
                if not is_sound(now):
                    return damaged_row("state", interaction_id)
                receipt = receipt_of(connection, interaction_id, key)
                if receipt is not None and not is_sound(now, receipt):
                    return damaged_row("receipt", interaction_id)
                outcome = decide(now, receipt, event)
                if outcome.name == "applied":
                    move_interaction(connection, interaction_id, outcome.after)
                    noted = Receipt(event, outcome.after)
                    add_receipt(connection, interaction_id, key, noted)
                return outcome
        except ApiError as error:
            return backend_error(str(error))

    def close(self) -> None:
        """Do nothing: the caller closes the database."""


class Interactions:
    """Apply events by a coordinator, and log them."""

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
        result = {"outcome": outcome.name, "transition_index": outcome.index}
        self._audit.append(trace_id, ended, result, refs)
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
