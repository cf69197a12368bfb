"""Applications as state machines: each event is one atomic step, applied once for each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from standards_mcp import ApiError

from .answers import Event, EventAnswer, OutcomeAnswer, OutcomeName
from .audit import AuditLog
from .database import Connection, Store
from .tables import insert

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


class Position(NamedTuple):
    """State and event count of an interaction.

    Attributes:
        state: 0 to 4, see `STATES`.
        transition_index: Number of applied events.
    """

    state: int
    transition_index: int


class Outcome(NamedTuple):
    """The outcome of an event, as in the answer.

    Attributes:
        error_message: The reason why the event was not applied, else empty.
    """

    outcome: OutcomeName
    before_state: int = 0
    after_state: int = 0
    transition_index: int = 0
    error_message: str = ""


def is_sound(position: Position, event: str | None = None) -> bool:
    """Return True if a position is possible, and an event can have led to it, if one is given.

    Other programs may have damaged the database or Redis.
    """
    numbers: list[object] = [*position]  # of any type, in a damaged row
    states = range(len(STATES)) if event is None else TRANSITIONS.get(event, {}).values()
    is_whole = all(isinstance(number, int) for number in numbers)
    return is_whole and position.state in states and position.transition_index >= 0


def damaged_row(what: str, interaction_id: str) -> Outcome:
    """Return the outcome for a damaged ``state`` or ``receipt`` in the database."""
    message = (
        f"The database holds a damaged {what} of interaction {interaction_id}, so nothing was "
        "changed. Restore the database from a backup."
    )
    return Outcome("backend_error", error_message=message)


def position_of(connection: Connection, interaction_id: str) -> Position | Outcome:
    """Return the position of an interaction, or the outcome for an unknown or damaged one."""
    row = connection.execute(
        "SELECT state, transition_index FROM interactions WHERE interaction_id = ?",
        (interaction_id,),
    ).fetchone()
    if row is None:
        return Outcome("not_found", error_message=f"Interaction not found: {interaction_id}")
    position = Position(*row)
    return position if is_sound(position) else damaged_row("state", interaction_id)


def move_interaction(connection: Connection, interaction_id: str, to: Position) -> None:
    """Set the position of an interaction, unless the stored index is as high or higher."""
    connection.execute(
        "UPDATE interactions SET state = ?, transition_index = ? "
        "WHERE interaction_id = ? AND transition_index < ?",
        (to.state, to.transition_index, interaction_id, to.transition_index),
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
            return Outcome("backend_error", error_message=str(error))

    def close(self) -> None:
        """Close the backend. The database stays open, because its owner closes it."""


def _apply(connection: Connection, interaction_id: str, event: Event, key: str) -> Outcome:
    current = position_of(connection, interaction_id)
    if isinstance(current, Outcome):
        return current
    state, index = current
    receipt: Any = connection.execute(
        "SELECT event, after_state, transition_index FROM interaction_receipts "
        "WHERE interaction_id = ? AND idempotency_key = ?",
        (interaction_id, key),
    ).fetchone()
    if receipt is not None:
        stored_event, *numbers = receipt
        after = Position(*numbers)
        if not is_sound(after, stored_event) or after.transition_index > index:
            return damaged_row("receipt", interaction_id)
        if stored_event == event:
            return Outcome("already_applied", after.state, after.state, after.transition_index)
        return Outcome("conflict", state, state, index, MESSAGES["conflict"])
    after_state = TRANSITIONS[event].get(state)
    if after_state is None:
        return Outcome("invalid_transition", state, state, index, MESSAGES["invalid_transition"])
    move_interaction(connection, interaction_id, Position(after_state, index + 1))
    row = {
        "interaction_id": interaction_id,
        "idempotency_key": key,
        "event": event,
        "after_state": after_state,
        "transition_index": index + 1,
    }
    insert(connection, "interaction_receipts", [row])
    return Outcome("applied", state, after_state, index + 1)


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
    result = cast("OutcomeAnswer", outcome._asdict())
    is_applied = outcome.outcome in ("applied", "already_applied")
    event_type = f"InteractionTransition{'Completed' if is_applied else 'Rejected'}"
    logged = {"outcome": outcome.outcome, "transition_index": outcome.transition_index}
    audit.append(trace_id, event_type, logged, refs)
    return {"trace_id": trace_id, "result": result}
