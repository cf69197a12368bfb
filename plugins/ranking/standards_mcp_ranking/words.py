"""BM25 over weighted words (Robertson and Zaragoza, https://doi.org/10.1561/1500000019)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from .texts import stems

_COMMON_WORDS: Final = """
a an and are as at be by can could did do does for from had has have how i if in into is it its me
my no not of on or our should so some that the their them then there these they this to use was we
what when where which who whose why will with would you your
"""
"""Words of queries that tell nothing about a tool."""
_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.5


class WordIndex:
    """Scores documents for the words of a query, from 0 to 1.

    Args:
        documents: The words of each document, with weights.
    """

    def __init__(self, documents: Sequence[Mapping[str, float]]) -> None:
        self._documents = documents
        self._lengths = [sum(words.values()) for words in documents]
        self._mean_length = sum(self._lengths) / max(1, len(documents)) or 1.0
        self._spread = Counter(word for words in documents for word in words)

    def scores(self, query: str) -> list[float]:
        """Return the score of each document."""
        common = _COMMON_WORDS.split()
        wanted = " ".join(word for word in query.split() if word.lower() not in common)
        rarities = {word: self._rarity(word) for word in stems(wanted)}
        best = sum(rarities.values()) * (_SATURATION + 1) or 1.0
        scores: list[float] = []
        for words, length in zip(self._documents, self._lengths, strict=True):
            share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * length / self._mean_length
            score = sum(
                rarity * words[word] * (_SATURATION + 1) / (words[word] + _SATURATION * share)
                for word, rarity in rarities.items()
                if word in words
            )
            scores.append(score / best)
        return scores

    def _rarity(self, word: str) -> float:
        spread = self._spread[word]
        return math.log(1 + (len(self._documents) - spread + 0.5) / (spread + 0.5))
