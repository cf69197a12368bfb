"""Who decides when several events race: one of these, in one atomic step."""

from __future__ import annotations

from typing import Protocol

from standards_mcp import ApiError
from standards_mcp_career.domain.transitions import (
    Event,
    Outcome,
    Receipt,
    backend_error,
    decide,
    is_sound,
    not_found,
)
from standards_mcp_career.store import interactions
from standards_mcp_career.store.database import Store


class Coordinator(Protocol):
    """Applies events to interactions."""

    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        """Apply an event once, however often it is told with this idempotency key.

        A backend that fails is an outcome, too.
        """
        ...

    def close(self) -> None:
        """Let go of the backend."""
        ...


def damaged_row(what: str, interaction_id: str) -> Outcome:
    """Return the outcome for a row of the database that no event can have led to."""
    return backend_error(
        f"The database holds a damaged {what} of interaction {interaction_id}, so nothing was "
        "changed. Restore the file of plugins.career.db from a backup."
    )


class SqliteCoordinator:
    """Decides in a transaction of the database, which may be in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        """See `Coordinator.apply`."""
        try:
            with self._store.writing() as connection:
                now = interactions.position(connection, interaction_id)
                if now is None:
                    return not_found(interaction_id)
                if not is_sound(now):
                    return damaged_row("state", interaction_id)
                receipt = interactions.receipt(connection, interaction_id, key)
                if receipt is not None and not is_sound(now, receipt):
                    return damaged_row("receipt", interaction_id)
                outcome = decide(now, receipt, event)
                if outcome.name == "applied":
                    interactions.move(connection, interaction_id, outcome.after)
                    noted = Receipt(event, outcome.after)
                    interactions.note(connection, interaction_id, key, noted)
                return outcome
        except ApiError as error:
            return backend_error(str(error))

    def close(self) -> None:
        """See `Coordinator.close`. The database is its caller's."""
