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
"""For each event, the next state by the current state."""
INVALID: Final = "Invalid transition from current state"
CONFLICT: Final = "Idempotency key was used with another event"


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
        message: The reason why it was not applied, else empty.
    """

    name: OutcomeName
    before_state: int
    after_state: int
    index: int
    message: str = ""

    @property
    def after(self) -> Position:
        """The position after the event."""
        return Position(self.after_state, self.index)


def is_sound(position: Position, receipt: Receipt | None = None) -> bool:
    """Return True if events can lead to a position, and to the position of a receipt.

    Other programs may have damaged the database or Redis.
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
    """Return the outcome for a failed backend."""
    return Outcome("backend_error", 0, 0, 0, cause)


def decide(now: Position, receipt: Receipt | None, event: Event) -> Outcome:
    """Decide the outcome of an event. The caller writes an applied event in the same step.

    Args:
        receipt: The receipt stored under the idempotency key.
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
