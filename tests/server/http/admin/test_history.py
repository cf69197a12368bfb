"""The calls of the last hour, and their charts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from standards_mcp.calls.call import CallRecord
from standards_mcp.server.http.admin.history import (
    Called,
    History,
    Tally,
    calls_chart,
    duration,
    latency_chart,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()
LOOK = Called("tool", "look", "desk")


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


def test_an_hour_has_its_calls_and_nothing_older():
    clock = Clock()
    history = History(clock)
    call(history, seconds=0.01)
    clock.now += 59 * 60
    call(history, seconds=0.02, outcome="timeout")
    call(history, seconds=0.02, outcome="asked")
    hour = history.hour()
    assert (hour.all.calls, hour.all.errors, hour.errors) == (3, 1, [("timeout", 1)])
    assert [hour.minutes[0].calls, hour.minutes[-1].calls, len(hour.minutes)] == [1, 2, 60]
    clock.now += 60
    assert (history.hour().all.calls, list(history.hour().by_name)) == (2, [LOOK])
    clock.now += 3600
    assert history.hour().all.calls == 0
    call(history)
    assert len(history._minutes) == 1


def test_names_and_types_of_errors_have_an_end():
    history = History(Clock())
    for number in range(2_000):
        call(history, name=f"made_up_{number}", outcome=f"error_{number}")
        call(history, name=f"made_up_{number}", plugin="", outcome="not_served")
    hour = history.hour()
    assert hour.all.calls == 4_000
    assert len(hour.by_name) < 210
    assert len(hour.errors) < 40
    assert hour.by_name[Called("tool", "not served", "")].calls == 2_000


def test_calls_that_run_are_known_until_they_end():
    history = History()
    one, other = record(), record(name="wait", caller="bob")
    history.call_started(one)
    history.call_started(other)
    assert [(each.called.name, each.caller) for each in history.running] == [
        ("look", "ann"),
        ("wait", "bob"),
    ]
    history.call_ended(one)
    assert [each.called.name for each in history.running] == ["wait"]


@pytest.mark.parametrize("seconds", [0.0, 0.00001, 0.002, 0.35, 12, 400])
def test_latency_is_exact_to_a_fifth(seconds: float):
    tally = Tally()
    assert tally.seconds(0.5) is None
    for _ in range(10):
        tally.add(seconds, is_error=False)
    told = tally.seconds(0.95)
    assert told
    assert max(seconds, 0.0001) <= told * 1.000001
    assert told <= max(seconds, 0.0001) * 1.2


def test_percentiles_tell_the_slow_from_the_usual():
    tally = Tally()
    for seconds in (*[0.01] * 94, *[1.0] * 6):
        tally.add(seconds, is_error=False)
    assert tally.seconds(0.5) == pytest.approx(0.01, rel=0.2)
    assert tally.seconds(0.95) == pytest.approx(1.0, rel=0.2)


def test_charts_show_the_minutes_and_tell_the_same_as_a_table():
    clock = Clock()
    history = History(clock)
    for minutes, calls, errors in ((0, 3, 1), (1, 4, 0), (30, 1, 0)):
        clock.now = NOON + 60 * minutes
        for number in range(calls):
            call(history, seconds=0.1, outcome="timeout" if number < errors else "ok")
    calls = calls_chart(history.hour())
    assert calls.times == ["11:31", "12:01", "12:30"]
    assert calls.rows == [("12:00", "3", "1"), ("12:01", "4", "0"), ("12:30", "1", "0")]
    assert [(bar.kind, bar.x, bar.height) for bar in calls.bars] == [
        ("errors", 291.0, 25.0),
        ("calls", 291.0, 50.0),
        ("calls", 301.0, 100.0),
        ("calls", 591.0, 25.0),
    ]
    assert calls.top == "4"
    assert "8 in all, 4 in the busiest minute, 1 with an error" in calls.about
    latency = latency_chart(history.hour())
    assert [len(pieces) for pieces in latency.lines.values()] == [2, 2]
    assert latency.top == "200 ms"


def test_charts_without_calls_are_empty():
    hour = History(Clock()).hour()
    calls, latency = calls_chart(hour), latency_chart(hour)
    assert not calls.rows + calls.bars + latency.rows
    assert list(latency.lines.values()) == [[], []]


def test_times_are_written_as_people_do():
    found = [duration(each) for each in (None, 0.00021, 0.0123, 0.99, 1.26, 250.4)]
    assert found == ["-", "0.2 ms", "12 ms", "990 ms", "1.3 s", "250 s"]
