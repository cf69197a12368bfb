"""The calls of the last hour."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from standards_mcp.calls.call import CallRecord
from standards_mcp_service.admin.facts import CalledItem, Figures, History, Minute

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()
LOOK = CalledItem("tool", "look", "desk")


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def record(**fields: Any) -> CallRecord:
    about = {"kind": "tool", "name": "look", "plugin": "desk", "caller": "ann", "outcome": "ok"}
    return CallRecord(**{**about, "arguments": {}, **fields})


def call(history: History, **fields: Any) -> None:
    one = record(**fields)
    history.call_started(one)
    history.call_ended(one)


def test_an_hour_has_its_calls_by_minute_and_by_name_and_nothing_older():
    clock = Clock()
    history = History(clock)
    assert history.hour().all == Figures()
    call(history, seconds=0.01)
    clock.now += 59 * 60
    call(history, seconds=0.02, outcome="timeout")
    call(history, seconds=0.02, outcome="asked")
    hour = history.hour()
    assert (hour.all.calls, hour.all.errors, hour.errors) == (3, 1, [("timeout", 1)])
    assert (hour.minutes[0], hour.minutes[-1]) == (Minute("12:00", 1, 0), Minute("12:59", 2, 1))
    assert (len(hour.minutes), hour.minutes[1].calls) == (60, 0)
    clock.now += 60
    assert history.hour().by_item == {LOOK: Figures(2, 1, 0.02, 0.02)}
    clock.now += 3600
    assert history.hour().all.calls == 0


def test_the_history_has_a_bound_and_no_names_that_clients_invent():
    history = History(Clock())
    for number in range(30_000):
        call(history, name=f"made_up_{number}", plugin="", outcome="not_served")
    hour = history.hour()
    assert hour.all.calls == 20_000
    assert list(hour.by_item) == [CalledItem("tool", "not served", "")]


def test_percentiles_tell_the_slow_from_the_usual():
    history = History(Clock())
    for seconds in (*[0.01] * 94, *[1.0] * 6):
        call(history, seconds=seconds)
    assert history.hour().all == Figures(100, 0, 0.01, 1.0)
