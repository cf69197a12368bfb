"""The charts of the last hour, as shapes that a template draws in SVG.

The drawings have no text of their own: it would shrink with them on a narrow page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final

from .history import MINUTES, Hour

WIDTH: Final = 10 * MINUTES
HEIGHT: Final = 100
_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, from its upper left corner."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """Lines of one kind: each is the points of an SVG ``polyline``; gaps are between them."""

    kind: str
    pieces: Sequence[str]


@dataclass(frozen=True, slots=True)
class Row:
    """A minute in the table beside a chart."""

    time: str
    cells: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart, and the same as a table.

    Attributes:
        name: Its name in the ids of the page.
        about: What it shows, in one sentence.
        legend: The kinds of shapes, with their meanings.
        top: The value at its upper edge.
        times: Those below its left edge, its middle and its right edge.
    """

    width: ClassVar = WIDTH
    height: ClassVar = HEIGHT

    name: str
    title: str
    about: str
    legend: Sequence[tuple[str, str]]
    top: str
    times: Sequence[str]
    rows: Sequence[Row]
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()


def calls_chart(hour: Hour) -> Chart:
    """Return the calls of each minute, and how many of them failed."""
    top = _round_up(max((each.calls for each in hour.minutes), default=0))
    bars: list[Bar] = []
    rows: list[Row] = []
    for index, minute in enumerate(hour.minutes):
        if not minute.calls:
            continue
        y = float(HEIGHT)
        for kind, count in (("errors", minute.errors), ("calls", minute.calls - minute.errors)):
            height = HEIGHT * count / top
            y -= height
            if count:
                bars.append(_bar(kind, index, y, height))
        rows.append(Row(_time(hour, index), (str(minute.calls), str(minute.errors))))
    busiest = max((each.calls for each in hour.minutes), default=0)
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
    """Return how long the calls of each minute took: the median, and the slow ones."""
    shares = (("slow", 0.95), ("median", 0.5))
    values = {kind: [each.seconds(share) for each in hour.minutes] for kind, share in shares}
    top = _round_up(max((each or 0.0 for each in values["slow"]), default=0.0))
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
            Row(
                _time(hour, index),
                [duration(values[kind][index]) for kind in ("median", "slow")],
            )
            for index, minute in enumerate(hour.minutes)
            if minute.calls
        ],
        lines=[Line(kind, _pieces(values[kind], top)) for kind, _ in shares],
    )


def duration(seconds: float | None) -> str:
    """Return a time as people write it."""
    if seconds is None:
        return "-"
    if seconds < 1:
        milliseconds = seconds * 1000
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"  # noqa: PLR2004  - digits
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"  # noqa: PLR2004  - digits


def _bar(kind: str, index: int, y: float, height: float) -> Bar:
    step = WIDTH / MINUTES
    return Bar(kind, index * step + _GAP / 2, round(y, 2), step - _GAP, round(height, 2))


def _pieces(values: Sequence[float | None], top: float) -> list[str]:
    """Return the lines through values that follow each other; one alone is a short dash."""
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
    """Return the next round number: one digit with zeros."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * each for each in range(1, 11) if unit * each >= value * (1 - 1e-9))


def _time(hour: Hour, index: int) -> str:
    moment = (hour.now // 60 - (MINUTES - 1 - index)) * 60
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M}"


def _times(hour: Hour) -> list[str]:
    return [_time(hour, index) for index in (0, MINUTES // 2, MINUTES - 1)]
