"""Measure how well a search hit fits an item, as the numbers that the calibration weighs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from standards_mcp_catalog import SearchHit

DEPTH: Final = 11
"""Number of hits to search for: the features compare a hit with those after it."""
FEATURES: Final = (
    "share_of_best_score", "lead", "item_words_in_standard", "standard_words_in_item",
    "item_length", "grade_is_known", "rank", "score_above_others",
)  # fmt: skip
"""The names of the features, in the order of `features_of`."""
_COMMON: Final = frozenset(
    (
        "the", "a", "an", "of", "and", "or", "to", "in", "for", "with", "on", "by", "is", "are",
        "be", "as", "that", "this", "from", "at", "it", "their", "they", "students", "student",
        "can", "will", "use", "using", "how", "what",
    )
)  # fmt: skip
_ENDINGS: Final = ("ing", "ions", "ion", "ies", "es", "ed", "s")
_SHORTEST_STEM: Final = 3
_MOST_WORDS: Final = 100
"""More words count as so many, as in the fit of the calibration."""
MEASURED_WORDS: Final = 102
"""Number of different words of the longest text that was measured."""
_COMPARED: Final = 9


def features_of(text: str, hits: Sequence[SearchHit], *, is_graded: bool) -> list[list[float]]:
    """Return the `FEATURES` of each hit of a search for *text*.

    Args:
        hits: The first `DEPTH` hits, best first.
        is_graded: True if only standards of the item's grade were searched.
    """
    item_words = words_in(text)
    scores = [hit.score for hit in hits]
    return [
        [
            score / scores[0] if scores[0] else 0.0,
            _lead(scores, rank),
            *_overlap(item_words, hits[rank]),
            math.log1p(min(len(item_words), _MOST_WORDS)),
            float(is_graded),
            math.log(rank + 1),
            score - _mean_of_others(scores, rank),
        ]
        for rank, score in enumerate(scores)
    ]


def words_in(text: str) -> frozenset[str]:
    """Return the different words of a text without common ones, cut to their stems."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(map(_stem, words)) - _COMMON


def _lead(scores: Sequence[float], rank: int) -> float:
    """Return the lead of the best hit on the second, or the distance of another to the best."""
    if rank:
        return scores[rank] - scores[0]
    return scores[0] - (scores[1] if len(scores) > 1 else 0)


def _overlap(item_words: frozenset[str], hit: SearchHit) -> tuple[float, float]:
    """Return the shares of the item's words in the standard, with headings, and the reverse."""
    with_headings, own = words_in(hit.record.content), words_in(hit.record.description)
    return (
        len(item_words & with_headings) / max(len(item_words), 1),
        len(item_words & own) / max(len(own), 1),
    )


def _mean_of_others(scores: Sequence[float], rank: int) -> float:
    others = [score for other, score in enumerate(scores) if other != rank][:_COMPARED]
    return sum(others) / len(others) if others else 0.0


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word
