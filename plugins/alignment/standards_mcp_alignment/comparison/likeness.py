"""Propose pairings of statements by their words and their meaning, each with a score.

A statement is proposed with each of its nearest in the other edition, and with several of them that
together have its words: these may be its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .statements import Pairing, Statement, Weights

Vectors: TypeAlias = npt.NDArray[np.float32]
Encode: TypeAlias = Callable[[Sequence[str]], Vectors]
"""Returns an array with a row of length 1 for each text."""

# Chosen by `benchmarks/compare_standards.py --dev`, measured on other frameworks.
MIN_SCORE: Final = 0.5
"""Statements with a lower score do not belong together."""
_SAME_CODE: Final = 0.05
_OTHER_GRADE: Final = 0.1
_OTHER_HEIGHT: Final = 0.1
_PER_PART: Final = 0.03
_MIN_INSIDE: Final = 0.5
"""The share of the words of a part that must be in the whole."""
_MIN_ADDED: Final = 0.05
"""The share of the words of the whole that each part must add to the other parts."""
_MIN_MEANING: Final = 0.4
"""The least cosine of a part and its whole."""
_MOST_PARTS: Final = 4
_NEAREST: Final = 15
_BLOCK: Final = 512
_LEAST: Final = 1e-6


class Likeness:
    """The likeness of statements of two editions, in words and in meaning.

    Args:
        encode: The text encoder.
        weights: The weights of the words of both editions.
    """

    def __init__(
        self,
        left: Sequence[Statement],
        right: Sequence[Statement],
        encode: Encode,
        weights: Weights,
    ) -> None:
        self._left, self._right, self._weights = left, right, weights
        texts = list(dict.fromkeys(each.text for each in (*left, *right)))
        self._vectors: dict[str, Vectors] = {}
        if texts:
            self._vectors |= zip(texts, encode(texts), strict=True)

    def proposals(self) -> list[Pairing]:
        """Return pairings with `MIN_SCORE` or more, the best first. Statements may repeat."""
        near_left = self.nearest(self._left, self._right)
        near_right = self.nearest(self._right, self._left)
        pairs = dict.fromkeys(
            [(one, other) for one, others in near_left for other in others]
            + [(one, other) for other, ones in near_right for one in ones]
        )
        found = [self._pairing((one,), (other,)) for one, other in pairs]
        found += [
            self._pairing((one,), parts)
            for one, others in near_left
            if len(parts := self._parts(one, others)) > 1
        ]
        found += [
            self._pairing(parts, (other,))
            for other, ones in near_right
            if len(parts := self._parts(other, ones)) > 1
        ]
        return sorted(
            (each for each in found if each.score >= MIN_SCORE), key=lambda each: -each.score
        )

    def nearest(
        self, statements: Sequence[Statement], others: Sequence[Statement]
    ) -> list[tuple[Statement, list[Statement]]]:
        """Return each statement with its nearest *others* in meaning, the nearest first."""
        if not statements or not others:
            return []
        rows = (
            np.stack([self._vectors[each.text] for each in side]) for side in (statements, others)
        )
        return [
            (statement, [others[place] for place in places])
            for statement, places in zip(statements, _nearest_rows(*rows), strict=True)
        ]

    def may_be_part(self, whole: Statement, part: Statement) -> bool:
        """Return True if most words of *part* are in *whole*, with a similar meaning."""
        if not part.is_near(whole):
            return False
        if float(np.dot(self._vectors[whole.text], self._vectors[part.text])) < _MIN_MEANING:
            return False
        inside = self._weights.of(part.words & whole.words)
        return inside >= _MIN_INSIDE * self._weights.of(part.words)

    def gain(self, whole: Statement, parts: Sequence[Statement], part: Statement) -> float:
        """Return the share of a whole that one more part adds, or 0 if it is too small."""
        added = (part.words & whole.words).difference(*(each.words for each in parts))
        gain = self._weights.of(added) / max(self._weights.of(whole.words), _LEAST)
        return gain if gain >= _MIN_ADDED else 0.0

    def _parts(self, whole: Statement, candidates: Sequence[Statement]) -> tuple[Statement, ...]:
        chosen = list[Statement]()
        rest = [each for each in candidates if self.may_be_part(whole, each)]
        while rest and len(chosen) < _MOST_PARTS:
            gains = [self.gain(whole, chosen, each) for each in rest]
            best = max(range(len(rest)), key=gains.__getitem__)
            if not gains[best]:
                break
            chosen.append(rest.pop(best))
        return tuple(chosen)

    def _pairing(self, left: tuple[Statement, ...], right: tuple[Statement, ...]) -> Pairing:
        words = self._weights.likeness(_words(left), _words(right))
        meaning = float(np.dot(self._mean(left), self._mean(right)))
        score = (words + meaning) / 2 - _PER_PART * (len(left) + len(right) - 2)
        one, other = left[0], right[0]
        if one.code and one.code == other.code:
            score += _SAME_CODE
        if not one.is_near(other):
            score -= _OTHER_GRADE
        if one.record.is_leaf != other.record.is_leaf:
            score -= _OTHER_HEIGHT
        score = round(min(max(score, 0.0), 1.0), 4)
        return Pairing(left, right, f"words {words:.2f}, meaning {meaning:.2f}", score)

    def _mean(self, statements: Sequence[Statement]) -> Vectors:
        if len(statements) == 1:
            return self._vectors[statements[0].text]
        mean = np.sum([self._vectors[each.text] for each in statements], axis=0)
        normalised: Vectors = mean / max(float(np.linalg.norm(mean)), _LEAST)
        return normalised


def _words(statements: Sequence[Statement]) -> frozenset[str]:
    return frozenset[str]().union(*(each.words for each in statements))


def _nearest_rows(vectors: Vectors, others: Vectors) -> Iterator[list[int]]:
    count = min(_NEAREST, len(others))
    for start in range(0, len(vectors), _BLOCK):  # a block at a time, to bound the memory
        cosines = vectors[start : start + _BLOCK] @ others.T
        rows = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(-cosines, rows, axis=1), axis=1, kind="stable")
        yield from np.take_along_axis(rows, order, axis=1).tolist()
