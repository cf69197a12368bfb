"""The changes between two editions, each with its kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .answers import KINDS, Kind
from .statements import Pairing, Statement


@dataclass(frozen=True, slots=True)
class Change:
    """One change, or one standard that is kept.

    Attributes:
        left: Its statements in the left edition; empty for a new one.
        right: Its statements in the right edition; empty for one that is gone.
        basis: The reason for the pairing.
    """

    kind: Kind
    left: tuple[Statement, ...]
    right: tuple[Statement, ...]
    basis: str
    score: float = 1.0

    @property
    def is_reworded(self) -> bool:
        """True if one standard has one successor with other words."""
        return (
            len(self.left) == len(self.right) == 1 and self.left[0].folded != self.right[0].folded
        )


def changes_of(
    left: Sequence[Statement], right: Sequence[Statement], pairings: Sequence[Pairing]
) -> list[Change]:
    """Return a change for every statement of both editions, kept ones at the end.

    Within a kind they are in the order of *left*, and new ones in the order of *right*.
    """
    places = {each.id: place for place, each in enumerate((*left, *right))}

    def in_order(statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(sorted(statements, key=lambda each: places[each.id]))

    changes = [
        Change(_kind(each), in_order(each.left), in_order(each.right), each.basis, each.score)
        for each in pairings
    ]
    used = {each.id for pairing in pairings for each in (*pairing.left, *pairing.right)}
    none = "nothing alike on the other side"
    changes += [Change("gone", (each,), (), none) for each in left if each.id not in used]
    changes += [Change("new", (), (each,), none) for each in right if each.id not in used]
    changes.sort(key=lambda each: (KINDS.index(each.kind), places[(each.left or each.right)[0].id]))
    return changes


def _kind(pairing: Pairing) -> Kind:
    if len(pairing.left) + len(pairing.right) > 2:  # noqa: PLR2004  - one on each side
        return "split" if len(pairing.right) > 1 else "merged"
    one, other = pairing.left[0], pairing.right[0]
    if not one.is_near(other):
        return "moved"
    # A source that states an exact match knows better than a comparison of words.
    is_kept = one.folded == other.folded or pairing.basis.startswith("stated: exactMatchOf")
    return "kept" if is_kept else "reworded"
