"""The smallest selection of activities, compared with brute force."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from operator import or_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_alignment.coverage.planning import MOST_EXACT, smallest_cover


def union(covered: Sequence[int]) -> int:
    return reduce(or_, covered, 0)


def smallest_by_trying_all(covered: Sequence[int]) -> int:
    wanted = union(covered)
    return next(
        size
        for size in range(len(covered) + 1)
        if any(union(chosen) == wanted for chosen in combinations(covered, size))
    )


@given(covered=st.lists(st.integers(0, 2**14 - 1) | st.sets(st.integers(0, 13)).map(
    lambda bits: sum(1 << bit for bit in bits)
), max_size=11))  # fmt: skip
def test_it_is_as_small_as_trying_all_selections_finds(covered: list[int]) -> None:
    cover = smallest_cover(covered)
    assert cover.exact
    assert union([covered[position] for position in cover.chosen]) == union(covered)
    assert len(cover.chosen) == smallest_by_trying_all(covered)


@given(covered=st.lists(st.integers(0, 2**10 - 1), max_size=30))
def test_each_step_adds_something(covered: list[int]) -> None:
    before = 0
    for position in smallest_cover(covered).chosen:
        assert covered[position] | before != before
        before |= covered[position]


def test_greed_alone_would_take_one_more() -> None:
    left_and_right = [0b000111, 0b111000]
    middle = 0b011110  # the largest, but it leaves a standard on each side
    cover = smallest_cover([middle, *left_and_right])
    assert sorted(cover.chosen) == [1, 2]


@pytest.mark.parametrize("density", [0.03, 0.1, 0.3])
def test_sixty_activities_are_exact(density: float) -> None:
    rng = random.Random(7)  # noqa: S311
    covered = [
        sum(1 << bit for bit in range(60) if rng.random() < density) for _ in range(MOST_EXACT)
    ]
    assert smallest_cover(covered).exact


def test_more_than_sixty_useful_activities_are_not_exact_and_say_so() -> None:
    # Pairs of neighbours in a circle: none is redundant, and each is needed for nothing alone.
    count = 2 * MOST_EXACT + 1
    covered = [1 << place | 1 << (place + 1) % count for place in range(count)]
    cover = smallest_cover(covered)
    assert not cover.exact
    assert union([covered[position] for position in cover.chosen]) == union(covered)


def test_many_redundant_activities_stay_exact() -> None:
    assert smallest_cover([0b11] * 500 + [0b100]).exact
