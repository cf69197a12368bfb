"""What becomes of an event is the same on every coordinator, whatever came before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from standards_mcp_career.addresses import RedisAddress
from standards_mcp_career.answers import Event
from standards_mcp_career.database import Store
from standards_mcp_career.interactions import Coordinator, Outcome, Position, position_of
from standards_mcp_career.postgres import PostgresStore
from standards_mcp_career.redis_coordinator import RedisCoordinator
from standards_mcp_career.schema import open_store

# The table once more, in the words of the states: what the tests compare with.
ALLOWED = {
    ("Draft", "Prepare"): "Ready",
    ("Ready", "Send"): "Sent",
    ("Sent", "ReceiveReply"): "Responded",
    **{(state, "Close"): "Closed" for state in ("Draft", "Ready", "Sent", "Responded")},
}
NAMES = ["Draft", "Ready", "Sent", "Responded", "Closed"]
EVENTS: tuple[Event, ...] = get_args(Event)
KEYS = st.sampled_from(["k", "y:z", "z", "'", "\n", "é"])
WHICH = st.sampled_from(["x", "x:y"])
Made = tuple[Store, Coordinator]


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    """Open a database and each coordinator."""
    if request.param == "postgres":
        store = open_store(request.getfixturevalue("postgres_address"))
    else:
        store = open_store(tmp_path / "career.db" if request.param == "sqlite" else None)
    if request.param == "redis":
        address = RedisAddress.parse(request.getfixturevalue("redis_address"))
        coordinator: Coordinator = RedisCoordinator(store, address)
    else:
        coordinator = Coordinator(store)
    yield store, coordinator
    coordinator.close()
    store.close()


class Model:
    """What must become of events, in the words of the states."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.now: dict[str, tuple[str, int]] = {}
        self.receipts: dict[tuple[str, str], tuple[str, str, int]] = {}

    def id_of(self, which: str) -> str:
        return f"{self._number} {which}"

    def apply(self, which: str, event: Event, key: str) -> Outcome:
        if which not in self.now:
            return Outcome("not_found", 0, 0, 0, f"Interaction not found: {self.id_of(which)}")
        name, index = self.now[which]
        state = NAMES.index(name)
        if (which, key) in self.receipts:
            noted, after, noted_index = self.receipts[which, key]
            if noted == event:
                then = NAMES.index(after)
                return Outcome("already_applied", then, then, noted_index)
            message = "Idempotency key was used with another event"
            return Outcome("conflict", state, state, index, message)
        if (name, event) not in ALLOWED:
            message = "Invalid transition from current state"
            return Outcome("invalid_transition", state, state, index, message)
        after = ALLOWED[name, event]
        self.now[which] = after, index + 1
        self.receipts[which, key] = event, after, index + 1
        return Outcome("applied", state, NAMES.index(after), index + 1)


def test_every_path_of_events_follows_the_table(made: Made, add_interaction: Callable[..., None]):
    store, coordinator = made
    numbers = count()

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model(next(numbers))

        @rule(which=WHICH, state=st.sampled_from(range(5)), index=st.integers(0, 3))
        def begin(self, which: str, state: int, index: int) -> None:
            if which not in self.model.now:
                add_interaction(store, self.model.id_of(which), state, index)
                self.model.now[which] = NAMES[state], index

        @rule(which=WHICH, event=st.sampled_from(EVENTS), key=KEYS)
        def apply(self, which: str, event: Event, key: str) -> None:
            expected = self.model.apply(which, event, key)
            assert coordinator.apply(self.model.id_of(which), event, key) == expected

        @invariant()
        def the_repository_has_followed(self) -> None:
            with store.reading() as connection:
                for which, (name, index) in self.model.now.items():
                    found = position_of(connection, self.model.id_of(which))
                    assert found == Position(NAMES.index(name), index)

    run_state_machine_as_test(Machine, settings=settings(max_examples=40, stateful_step_count=20))


@pytest.mark.parametrize("text", ["'\"; DROP", "a\nb", "x" * 1_000_000, "nul\0", "é\u2028"])
def test_any_text_may_be_an_id_or_a_key(
    made: Made, add_interaction: Callable[..., None], text: str
):
    store, coordinator = made
    if isinstance(store, PostgresStore):  # whose keys are short and have no null character
        text = text.replace("\0", "")[:600]
    add_interaction(store, text)
    assert coordinator.apply(text, "Prepare", text).outcome == "applied"
    assert coordinator.apply(text, "Prepare", text).outcome == "already_applied"
    assert coordinator.apply(text, "Send", text).outcome == "conflict"


def test_keys_are_pairs_and_not_joined_texts(made: Made, add_interaction: Callable[..., None]):
    store, coordinator = made
    for interaction_id in ("x", "x:y"):
        add_interaction(store, interaction_id)
    assert coordinator.apply("x", "Prepare", "y:z").outcome == "applied"
    assert coordinator.apply("x:y", "Close", "z").outcome == "applied"


def test_a_key_that_was_not_applied_stays_free(made: Made, add_interaction: Callable[..., None]):
    store, coordinator = made
    add_interaction(store, "i")
    assert coordinator.apply("i", "Send", "k").outcome == "invalid_transition"
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"
