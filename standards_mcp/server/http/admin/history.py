"""The calls that run, and those of the last hour by the minute; its memory is bounded."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from standards_mcp.calls.call import NO_ERRORS, CallRecord

MINUTES: Final = 60
_MOST_NAMES: Final = 200
_MOST_OUTCOMES: Final = 30
_OTHER: Final = "other"
_SHORTEST: Final = 0.0001  # seconds
_STEPS: Final = 4  # of latency, between a time and its double


@dataclass(slots=True)
class Tally:
    """What became of some calls.

    Attributes:
        errors: Those that ended with an error.
        steps: How many took how long, in steps of latency.
    """

    calls: int = 0
    errors: int = 0
    steps: Counter[int] = field(default_factory=Counter[int])

    def add(self, seconds: float, *, is_error: bool) -> None:
        """Add a call."""
        self.calls += 1
        self.errors += is_error
        self.steps[max(0, math.ceil(_STEPS * math.log2(max(seconds, _SHORTEST) / _SHORTEST)))] += 1

    def include(self, other: Tally) -> None:
        """Add the calls of another."""
        self.calls += other.calls
        self.errors += other.errors
        self.steps.update(other.steps)

    def seconds(self, share: float) -> float | None:
        """Return the time in which this share of the calls had ended; it is up to 19 % too long."""
        wanted = math.ceil(share * self.calls)
        for step in sorted(self.steps):
            wanted -= self.steps[step]
            if wanted <= 0:
                return float(_SHORTEST * 2 ** (step / _STEPS))
        return None


@dataclass(frozen=True, slots=True)
class Called:
    """What was called: a tool, a prompt or something else of a plugin."""

    kind: str
    name: str
    plugin: str


@dataclass(slots=True)
class _Minute:
    tallies: dict[Called, Tally] = field(default_factory=dict[Called, Tally])
    outcomes: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, slots=True)
class Running:
    """A call that runs.

    Attributes:
        seconds: For how long.
    """

    called: Called
    caller: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Hour:
    """The last hour.

    Attributes:
        minutes: The oldest first; the last one is still going on.
        now: The time in seconds since 1970.
        all: All of its calls.
        by_name: The most called first.
        errors: How many errors there were of each type, the most frequent first.
    """

    minutes: Sequence[Tally]
    now: float
    all: Tally
    by_name: Mapping[Called, Tally]
    errors: Sequence[tuple[str, int]]


class History:
    """Observes calls. Names that clients make up are not kept.

    Args:
        clock: Returns the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minutes: dict[int, _Minute] = {}
        self._running: dict[int, tuple[CallRecord, float]] = {}

    def call_started(self, record: CallRecord) -> None:
        """Note a call that runs."""
        self._running[id(record)] = record, time.monotonic()

    def call_ended(self, record: CallRecord) -> None:
        """Count a call."""
        self._running.pop(id(record), None)
        minute, is_error = self._minute(), record.outcome not in NO_ERRORS
        called = _called(record)
        if called not in minute.tallies and len(minute.tallies) >= _MOST_NAMES:
            called = Called(record.kind, _OTHER, "")
        minute.tallies.setdefault(called, Tally()).add(record.seconds, is_error=is_error)
        if is_error:
            known = record.outcome in minute.outcomes or len(minute.outcomes) < _MOST_OUTCOMES
            minute.outcomes[record.outcome if known else _OTHER] += 1

    @property
    def running(self) -> list[Running]:
        """The calls that run, the longest first."""
        now = time.monotonic()
        found = sorted(self._running.values(), key=lambda each: each[1])
        return [
            Running(_called(record), record.caller, max(0.0, now - began))
            for record, began in found
        ]

    def hour(self) -> Hour:
        """Return the last hour, with the minute that is going on."""
        now = self._clock()
        last = int(now // 60)
        minutes = [self._minutes.get(each) for each in range(last - MINUTES + 1, last + 1)]
        kept = [each for each in minutes if each]
        by_name: dict[Called, Tally] = {}
        outcomes = Counter[str]()
        for minute in kept:
            outcomes.update(minute.outcomes)
            for called, tally in minute.tallies.items():
                by_name.setdefault(called, Tally()).include(tally)
        ordered = sorted(by_name.items(), key=lambda item: (-item[1].calls, item[0].name))
        return Hour(
            minutes=[_sum(each.tallies.values() if each else ()) for each in minutes],
            now=now,
            all=_sum(by_name.values()),
            by_name=dict(ordered),
            errors=outcomes.most_common(),
        )

    def _minute(self) -> _Minute:
        now = int(self._clock() // 60)
        if now not in self._minutes:
            self._minutes = {
                each: found for each, found in self._minutes.items() if 0 < now - each < MINUTES
            }
        return self._minutes.setdefault(now, _Minute())


def _called(record: CallRecord) -> Called:
    return Called(record.kind, record.name if record.plugin else "not served", record.plugin)


def _sum(tallies: Iterable[Tally]) -> Tally:
    found = Tally()
    for each in tallies:
        found.include(each)
    return found
