"""The state machine of an application: states, events, idempotency receipts and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Event: TypeAlias = Literal["Prepare", "Send", "ReceiveReply", "Close"]
OutcomeName: TypeAlias = Literal[
    "applied", "already_applied", "conflict", "invalid_transition", "not_found", "backend_error"
]

STATES: Final = ("Draft", "Ready", "Sent", "Responded", "Closed")
"""The names of the states 0 to 4."""
TRANSITIONS: Final[Mapping[str, Mapping[int, int]]] = {
    "Prepare": {0: 1},
    "Send": {1: 2},
    "ReceiveReply": {2: 3},
    "Close": {0: 4, 1: 4, 2: 4, 3: 4},
}
"""For each event the state after each state in which it is allowed."""
INVALID: Final = "Invalid transition from current state"
CONFLICT: Final = "Idempotency key was used with another event"


@dataclass(frozen=True, slots=True)
class Position:
    """Where an interaction is.

    Attributes:
        state: 0 to 4, see `STATES`.
        index: How many events were applied.
    """

    state: int
    index: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was noted with an event that was applied."""

    event: str
    after: Position


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an event.

    Attributes:
        message: Why it was not applied; empty otherwise.
    """

    name: OutcomeName
    before_state: int
    after_state: int
    index: int
    message: str = ""

    @property
    def after(self) -> Position:
        """Return where the interaction is by this."""
        return Position(self.after_state, self.index)


def is_sound(position: Position, receipt: Receipt | None = None) -> bool:
    """Return True if events can have led to a position, or to that of a receipt.

    Whoever may write to the database or to Redis may have damaged both.
    """
    if receipt is not None:
        led_to = TRANSITIONS.get(receipt.event, {}).values()
        is_of_event = receipt.after.state in led_to and is_sound(receipt.after)
        return is_of_event and receipt.after.index <= position.index
    is_whole = _is_whole(position.state) and _is_whole(position.index)
    return is_whole and position.state in range(len(STATES)) and position.index >= 0


def _is_whole(number: object) -> bool:
    return isinstance(number, int)


def not_found(interaction_id: str) -> Outcome:
    """Return the outcome for an interaction that does not exist."""
    return Outcome("not_found", 0, 0, 0, f"Interaction not found: {interaction_id}")


def backend_error(cause: str) -> Outcome:
    """Return the outcome where the events are kept nowhere."""
    return Outcome("backend_error", 0, 0, 0, cause)


def decide(now: Position, receipt: Receipt | None, event: Event) -> Outcome:
    """Return what becomes of an event; the caller writes what is applied, in the same step.

    Args:
        receipt: What was noted under the idempotency key.
    """
    if receipt is not None and receipt.event == event:
        after = receipt.after
        return Outcome("already_applied", after.state, after.state, after.index)
    if receipt is not None:
        return Outcome("conflict", now.state, now.state, now.index, CONFLICT)
    after_state = TRANSITIONS[event].get(now.state)
    if after_state is None:
        return Outcome("invalid_transition", now.state, now.state, now.index, INVALID)
    return Outcome("applied", now.state, after_state, now.index + 1)
