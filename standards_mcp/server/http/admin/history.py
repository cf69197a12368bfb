"""The running calls and the calls of the last hour, in bounded memory, and their charts.

A chart is made of shapes that a template draws in SVG. They contain no text, because text would
shrink with the drawing on a narrow page.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Final

from standards_mcp.calls.call import NO_ERRORS, CallRecord

# An hour takes some kilobytes a minute; `/metrics` serves longer times and all processes.
MINUTES: Final = 60
WIDTH: Final = 10 * MINUTES
HEIGHT: Final = 100
_GAP: Final = 2
_MOST_NAMES: Final = 200
_MOST_OUTCOMES: Final = 30
_OTHER: Final = "other"
_SHORTEST: Final = 0.0001  # seconds
# Prometheus keeps no last hour, and its 15 steps are too coarse for a chart.
_STEPS: Final = 4  # steps of latency between a time and its double


@dataclass(slots=True)
class Tally:
    """Number, errors and latency of some calls.

    Attributes:
        errors: Number of calls that ended with an error.
        steps: Number of calls by their step of latency.
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
        """Add the calls of another tally."""
        self.calls += other.calls
        self.errors += other.errors
        self.steps.update(other.steps)

    def seconds(self, share: float) -> float | None:
        """Return the time after which this share of calls has ended, at most 19 % too long."""
        left = math.ceil(share * self.calls)
        for step in sorted(self.steps):
            left -= self.steps[step]
            if left <= 0:
                return float(_SHORTEST * 2 ** (step / _STEPS))
        return None


@dataclass(frozen=True, slots=True)
class Called:
    """The item of a call: a tool, a prompt, a resource or a route of a plugin."""

    kind: str
    name: str
    plugin: str


@dataclass(slots=True)
class _Minute:
    tallies: dict[Called, Tally] = field(default_factory=dict[Called, Tally])
    outcomes: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, slots=True)
class Running:
    """A running call.

    Attributes:
        seconds: Time since its start.
    """

    called: Called
    caller: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Hour:
    """The last hour.

    Attributes:
        minutes: The oldest first; the last one has not ended.
        now: The time in seconds since 1970.
        all: All calls together.
        by_name: The calls by item, the most called first.
        errors: Number of errors by type, the most frequent first.
    """

    minutes: Sequence[Tally]
    now: float
    all: Tally
    by_name: Mapping[Called, Tally]
    errors: Sequence[tuple[str, int]]


class History:
    """Observe calls. Names that clients invent are not stored.

    Args:
        clock: Returns the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minutes: dict[int, _Minute] = {}
        self._running: dict[int, tuple[CallRecord, float]] = {}

    def call_started(self, record: CallRecord) -> None:
        """Note a running call."""
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
            has_room = record.outcome in minute.outcomes or len(minute.outcomes) < _MOST_OUTCOMES
            minute.outcomes[record.outcome if has_room else _OTHER] += 1

    @property
    def running(self) -> list[Running]:
        """The running calls, the longest first."""
        now = time.monotonic()
        return [
            Running(_called(record), record.caller, max(0.0, now - began))
            for record, began in sorted(self._running.values(), key=lambda call: call[1])
        ]

    def hour(self) -> Hour:
        """Return the last hour, including the current minute."""
        now = self._clock()
        last = int(now // 60)
        minutes = [self._minutes.get(number) for number in range(last - MINUTES + 1, last + 1)]
        by_name: dict[Called, Tally] = {}
        outcomes = Counter[str]()
        for minute in filter(None, minutes):
            outcomes.update(minute.outcomes)
            for called, tally in minute.tallies.items():
                by_name.setdefault(called, Tally()).include(tally)
        ordered = sorted(by_name.items(), key=lambda item: (-item[1].calls, item[0].name))
        return Hour(
            minutes=[_sum(minute.tallies.values() if minute else ()) for minute in minutes],
            now=now,
            all=_sum(by_name.values()),
            by_name=dict(ordered),
            errors=outcomes.most_common(),
        )

    def _minute(self) -> _Minute:
        now = int(self._clock() // 60)
        if now not in self._minutes:
            self._minutes = {
                number: minute
                for number, minute in self._minutes.items()
                if 0 < now - number < MINUTES
            }
        return self._minutes.setdefault(now, _Minute())


def _called(record: CallRecord) -> Called:
    return Called(record.kind, record.name if record.plugin else "not served", record.plugin)


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.include(tally)
    return total


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar by its upper left corner and its size."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart, and the same data as a table.

    Attributes:
        name: Its name in the ids of the page.
        about: Its content in one sentence.
        legend: The kinds of shapes with their meanings.
        top: The value at its upper edge.
        times: The labels below its left edge, its middle and its right edge.
        rows: The time and the values of each minute with calls.
        lines: The pieces of each line by its kind, as points of an SVG ``polyline``.
    """

    width: ClassVar = WIDTH
    height: ClassVar = HEIGHT

    name: str
    title: str
    about: str
    legend: Sequence[tuple[str, str]]
    top: str
    times: Sequence[str]
    rows: Sequence[Sequence[str]]
    bars: Sequence[Bar] = ()
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def calls_chart(hour: Hour) -> Chart:
    """Return the chart of calls and errors by minute."""
    busiest = max((minute.calls for minute in hour.minutes), default=0)
    top = _round_up(busiest)
    bars, rows = list[Bar](), list[Sequence[str]]()
    step = WIDTH / MINUTES
    for index, minute in enumerate(hour.minutes):
        if not minute.calls:
            continue
        y = float(HEIGHT)
        for kind, count in (("errors", minute.errors), ("calls", minute.calls - minute.errors)):
            height = HEIGHT * count / top
            y -= height
            if count:
                x = index * step + _GAP / 2
                bars.append(Bar(kind, x, round(y, 2), step - _GAP, round(height, 2)))
        rows.append((_time(hour, index), str(minute.calls), str(minute.errors)))
    return Chart(
        name="calls",
        title="Calls and errors",
        about=(
            f"Calls by the minute in the last hour: {hour.all.calls:,} in all, {busiest:,} in the"
            f" busiest minute, {hour.all.errors:,} with an error."
        ),
        legend=(("calls", "Calls"), ("errors", "Errors")),
        top=f"{top:,.0f}",
        times=_times(hour),
        rows=rows,
        bars=bars,
    )


def latency_chart(hour: Hour) -> Chart:
    """Return the chart of the median and the 95th percentile of latency by minute."""
    shares = (("slow", 0.95), ("median", 0.5))
    values = {kind: [minute.seconds(share) for minute in hour.minutes] for kind, share in shares}
    top = _round_up(max((seconds or 0.0 for seconds in values["slow"]), default=0.0))
    slow, median = (duration(hour.all.seconds(share)) for _, share in shares)
    return Chart(
        name="latency",
        title="Latency",
        about=(
            f"How long calls took, by the minute in the last hour. Of all calls, half took {median}"
            f" or less, and 95 % took {slow} or less."
        ),
        legend=(("median", "Median"), ("slow", "95 % are faster")),
        top=duration(top),
        times=_times(hour),
        rows=[
            (_time(hour, index), *(duration(values[kind][index]) for kind in ("median", "slow")))
            for index, minute in enumerate(hour.minutes)
            if minute.calls
        ],
        lines={kind: _pieces(values[kind], top) for kind, _ in shares},
    )


def duration(seconds: float | None) -> str:
    """Return a time for people."""
    if seconds is None:
        return "-"
    if seconds < 1:
        milliseconds = seconds * 1000
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"  # noqa: PLR2004  - digits
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"  # noqa: PLR2004  - digits


def _pieces(values: Sequence[float | None], top: float) -> list[str]:
    """Return the lines through consecutive values; a single value is a short dash."""
    step, pieces, points = WIDTH / MINUTES, list[str](), list[tuple[float, float]]()
    for index, value in enumerate([*values, None]):
        if value is not None:
            points.append((index * step + step / 2, HEIGHT * (1 - value / top)))
        elif points:
            (x, y), (end, last) = points[0], points[-1]
            points = [(x - step / 3, y), *points, (end + step / 3, last)]
            pieces.append(" ".join(f"{x:.1f},{y:.2f}" for x, y in points))
            points = []
    return pieces


def _round_up(value: float) -> float:
    """Return the next number with one digit and zeros."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * n for n in range(1, 11) if unit * n >= value * (1 - 1e-9))


def _time(hour: Hour, index: int) -> str:
    moment = (hour.now // 60 - (MINUTES - 1 - index)) * 60
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M}"


def _times(hour: Hour) -> list[str]:
    return [_time(hour, index) for index in (0, MINUTES // 2, MINUTES - 1)]
