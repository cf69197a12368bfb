"""Rank memories by words and meaning together.

The scores of both sides are divided by their best and added with weights, as in the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Measured with benchmarks/memory_search.py: 0.45, the weight of the catalog, finds as many, but
# puts fewer of them first.
WORD_WEIGHT: Final = 0.3


def fused(cosines: Mapping[int, float], words: Mapping[int, float]) -> dict[int, float]:
    """Return a score between 0 and 1 for each memory of *cosines*.

    The best score is that of the nearest vector, so a query that fits nothing has low scores.

    Args:
        words: Scores by words of the same memories.
    """
    nearest = max(0.0, min(1.0, max(cosines.values(), default=0.0)))
    best = max(words.values(), default=0.0)
    if nearest <= 0 or best <= 0:
        return dict(cosines)
    return {
        each: WORD_WEIGHT * nearest * words.get(each, 0.0) / best
        + (1 - WORD_WEIGHT) * max(0.0, cosine)
        for each, cosine in cosines.items()
    }
