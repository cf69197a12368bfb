"""Choose the smallest set of activities that covers the most standards.

All activities together cover the most, so this is the problem of the minimum set cover. It is
solved by branch and bound. The standards of an activity are an integer with a bit for each
standard, because Python computes with such sets fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MOST_EXACT: Final = 60
"""The smallest set is found among so many activities; redundant ones do not count."""
# About twenty seconds. Random plans of 60 activities need up to 16,252 nodes, real ones fewer than
# a hundred; a client may send worse ones.
_MOST_NODES: Final = 60_000
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Cover:
    """A selection of activities.

    Attributes:
        chosen: Positions of the activities; each adds the most standards to those before it.
        exact: True if no smaller selection covers as much.
    """

    chosen: tuple[int, ...]
    exact: bool


def smallest_cover(covered: Sequence[int]) -> Cover:
    """Return the smallest selection of activities that covers all that the activities cover.

    Args:
        covered: For each activity the standards that it covers, as bits.
    """
    wanted = 0
    for standards in covered:
        wanted |= standards
    by_position = dict(enumerate(covered))
    greedy = _greedy(by_position, wanted)
    if len(_reduced(by_position, wanted)[1]) > MOST_EXACT:
        return Cover(tuple(greedy), exact=False)
    search = _Search(greedy)
    search.extend([], by_position, wanted)
    chosen = {position: by_position[position] for position in sorted(search.best)}
    return Cover(tuple(_greedy(chosen, wanted)), exact=search.nodes <= _MOST_NODES)


def _greedy(choices: Mapping[int, int], wanted: int) -> list[int]:
    """Return positions that cover *wanted*, always the one that adds the most."""
    chosen = list[int]()
    while wanted:
        best = max(choices, key=lambda position: (choices[position] & wanted).bit_count())
        chosen.append(best)
        wanted &= ~choices[best]
    return chosen


class _Search:
    """Branch and bound over the activities that cover one standard.

    Attributes:
        best: The smallest selection so far.
        nodes: Number of nodes visited; at `_MOST_NODES` the search ends.
    """

    def __init__(self, best: list[int]) -> None:
        self.best = best
        self.nodes = 0

    def extend(self, chosen: list[int], choices: Mapping[int, int], wanted: int) -> None:
        """Try all selections that begin with *chosen* and cover *wanted* by *choices*."""
        self.nodes += 1
        forced, choices, wanted = _reduced(choices, wanted)
        chosen = [*chosen, *forced]
        if not wanted:
            if len(chosen) < len(self.best):
                self.best = chosen
            return
        coverers = _coverers(choices, wanted)
        if len(chosen) + _least_count(choices, coverers) >= len(self.best):
            return
        # The standard with the fewest activities: one of them is needed, and few are to be tried.
        branches = min(coverers.values(), key=len)
        remaining = dict(choices)
        for position in sorted(branches, key=lambda each: -choices[each].bit_count()):
            if self.nodes > _MOST_NODES:
                return
            del remaining[position]  # later branches are without it
            self.extend([*chosen, position], remaining, wanted & ~choices[position])


def _reduced(choices: Mapping[int, int], wanted: int) -> tuple[list[int], dict[int, int], int]:
    """Return the activities that are needed, the choices that remain, and what these must cover.

    An activity is redundant if another covers the same and more. A standard needs no attention if
    every activity for some other standard covers it.
    """
    forced = list[int]()
    while True:
        remaining = _without_redundant(choices, wanted)
        coverers = _coverers(remaining, wanted)
        needed = {positions[0] for positions in coverers.values() if len(positions) == 1}
        if not needed:
            return forced, remaining, _without_implied(coverers)
        forced += sorted(needed)
        for position in needed:
            wanted &= ~remaining.pop(position)
        choices = remaining


def _without_redundant(choices: Mapping[int, int], wanted: int) -> dict[int, int]:
    kept = dict[int, int]()
    limited = {position: standards & wanted for position, standards in choices.items()}
    for position in sorted(limited, key=lambda each: -limited[each].bit_count()):
        standards = limited[position]
        if standards and not any(standards | other == other for other in kept.values()):
            kept[position] = standards
    return kept


def _coverers(choices: Mapping[int, int], wanted: int) -> dict[int, list[int]]:
    """Return the positions that cover each of the standards, by the standard's bit."""
    return {
        bit: [position for position, standards in choices.items() if standards & bit]
        for bit in _bits(wanted)
    }


def _without_implied(coverers: Mapping[int, Sequence[int]]) -> int:
    kept, wanted = list[frozenset[int]](), 0
    for bit, positions in sorted(coverers.items(), key=lambda item: len(item[1])):
        own = frozenset(positions)
        if not any(other <= own for other in kept):
            kept.append(own)
            wanted |= bit
    return wanted


def _least_count(choices: Mapping[int, int], coverers: Mapping[int, Sequence[int]]) -> int:
    """Return a number of activities that any selection needs at least."""
    # Each standard names a price. If the standards of no activity together pay more than 1, any
    # selection has as many activities as all prices together, or more: the dual linear program.
    size = {position: standards.bit_count() for position, standards in choices.items()}
    even = {bit: 1 / max(size[each] for each in positions) for bit, positions in coverers.items()}
    return max(_total_price(choices, coverers, start) for start in ({}, even))


def _total_price(
    choices: Iterable[int], coverers: Mapping[int, Sequence[int]], start: Mapping[int, float]
) -> int:
    """Return the sum of prices, raised from *start* in turn as far as they may be."""
    unpaid = dict.fromkeys(choices, 1.0)
    total = 0.0
    for raises in (False, True):
        for bit, positions in sorted(coverers.items(), key=lambda item: len(item[1])):
            price = min(unpaid[each] for each in positions) if raises else start.get(bit, 0.0)
            total += price
            for each in positions:
                unpaid[each] -= price
    return math.ceil(total - _ROUNDING)


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest
        number ^= lowest
