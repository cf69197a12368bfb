"""Applications as state machines: each event is one atomic step, applied once for each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, Final

from standards_mcp import ApiError

from .answers import Event, EventAnswer, OutcomeName
from .audit import AuditLog
from .database import Store

STATES: Final = ("Draft", "Ready", "Sent", "Responded", "Closed")
"""The names of the states 0 to 4."""
TRANSITIONS: Final[Mapping[str, Mapping[int, int]]] = {
    "Prepare": {0: 1},
    "Send": {1: 2},
    "ReceiveReply": {2: 3},
    "Close": {0: 4, 1: 4, 2: 4, 3: 4},
}
"""For each event, the next state by the current state."""
MESSAGES: Final[Mapping[OutcomeName, str]] = {
    "conflict": "Idempotency key was used with another event",
    "invalid_transition": "Invalid transition from current state",
}
"""Why an event was refused."""


@dataclass(frozen=True, slots=True)
class Position:
    """State and event count of an interaction.

    Attributes:
        state: 0 to 4, see `STATES`.
        index: Number of applied events.
    """

    state: int
    index: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """The stored result of an applied event."""

    event: str
    after: Position


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an event.

    Attributes:
        message: The reason why the event was not applied, else empty.
    """

    name: OutcomeName
    before_state: int = 0
    after_state: int = 0
    index: int = 0
    message: str = ""


def is_sound(position: Position, receipt: Receipt | None = None) -> bool:
    """Return True if a position is possible. With a receipt, only check the receipt against it.

    Other programs may have damaged the database or Redis.
    """
    if receipt is not None:
        next_states = TRANSITIONS.get(receipt.event, {}).values()
        is_of_event = receipt.after.state in next_states and is_sound(receipt.after)
        return is_of_event and receipt.after.index <= position.index
    numbers: list[object] = [position.state, position.index]  # of any type, in a damaged row
    is_whole = all(isinstance(number, int) for number in numbers)
    return is_whole and position.state in range(len(STATES)) and position.index >= 0


def not_found(interaction_id: str) -> Outcome:
    """Return the outcome for an interaction that does not exist."""
    return Outcome("not_found", message=f"Interaction not found: {interaction_id}")


def backend_error(cause: str) -> Outcome:
    """Return the outcome for a failed backend."""
    return Outcome("backend_error", message=cause)


def damaged_row(what: str, interaction_id: str) -> Outcome:
    """Return the outcome for a damaged row of the database.

    Args:
        what: The kind of data, ``state`` or ``receipt``.
    """
    return backend_error(
        f"The database holds a damaged {what} of interaction {interaction_id}, so nothing was "
        "changed. Restore the file of plugins.career.db from a backup."
    )


def position_of(connection: Connection, interaction_id: str) -> Position | None:
    """Return the position of an interaction, None for an unknown id."""
    row = connection.execute(
        "SELECT state, transition_index FROM interactions WHERE interaction_id = ?",
        (interaction_id,),
    ).fetchone()
    return Position(*row) if row else None


def move_interaction(connection: Connection, interaction_id: str, to: Position) -> None:
    """Set the position of an interaction, unless the stored index is as high or higher."""
    connection.execute(
        "UPDATE interactions SET state = ?, transition_index = ? "
        "WHERE interaction_id = ? AND transition_index < ?",
        (to.state, to.index, interaction_id, to.index),
    )


class Coordinator:
    """Applies events in transactions of the database, which may be in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        """Apply an event once for each idempotency key, in one atomic step.

        A failing backend is the outcome ``backend_error``.
        """
        try:
            with self._store.writing() as connection:
                return _apply(connection, interaction_id, event, key)
        except ApiError as error:
            return backend_error(str(error))

    def close(self) -> None:
        """Close the backend. The database stays open, because its owner closes it."""


def _apply(connection: Connection, interaction_id: str, event: Event, key: str) -> Outcome:
    current = position_of(connection, interaction_id)
    if current is None:
        return not_found(interaction_id)
    if not is_sound(current):
        return damaged_row("state", interaction_id)
    row: Any = connection.execute(
        "SELECT event, after_state, transition_index FROM interaction_receipts "
        "WHERE interaction_id = ? AND idempotency_key = ?",
        (interaction_id, key),
    ).fetchone()
    if row is not None:
        receipt = Receipt(row["event"], Position(row["after_state"], row["transition_index"]))
        return _receipt_outcome(interaction_id, event, current, receipt)
    after_state = TRANSITIONS[event].get(current.state)
    if after_state is None:
        message = MESSAGES["invalid_transition"]
        return Outcome("invalid_transition", current.state, current.state, current.index, message)
    index = current.index + 1
    move_interaction(connection, interaction_id, Position(after_state, index))
    connection.execute(
        "INSERT INTO interaction_receipts VALUES (?, ?, ?, ?, ?)",
        (interaction_id, key, event, after_state, index),
    )
    return Outcome("applied", current.state, after_state, index)


def _receipt_outcome(
    interaction_id: str, event: Event, current: Position, receipt: Receipt
) -> Outcome:
    """Return the outcome for a key that has a receipt."""
    if not is_sound(current, receipt):
        return damaged_row("receipt", interaction_id)
    if receipt.event == event:
        after = receipt.after
        return Outcome("already_applied", after.state, after.state, after.index)
    return Outcome("conflict", current.state, current.state, current.index, MESSAGES["conflict"])


def apply_event(
    coordinator: Coordinator,
    audit: AuditLog,
    interaction_id: str,
    event: Event,
    idempotency_key: str,
    trace_id: str | None = None,
) -> EventAnswer:
    """Apply an event to an interaction, once for each idempotency key, and log the call.

    Raises:
        ApiError: The database fails.
    """
    trace_id, refs = audit.trace(trace_id), [interaction_id]
    attempted = {
        "interaction_id": interaction_id,
        "event": event,
        "idempotency_key": idempotency_key,
    }
    audit.append(trace_id, "InteractionTransitionAttempted", attempted, refs)
    outcome = coordinator.apply(interaction_id, event, idempotency_key)
    is_applied = outcome.name in ("applied", "already_applied")
    event_type = f"InteractionTransition{'Completed' if is_applied else 'Rejected'}"
    result = {"outcome": outcome.name, "transition_index": outcome.index}
    audit.append(trace_id, event_type, result, refs)
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
