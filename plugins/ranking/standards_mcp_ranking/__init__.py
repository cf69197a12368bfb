"""Rank tools by words and meaning for `search_tools`, the host's search for tools.

The host finds `open_ranking` by the entry point ``standards_mcp.tool_ranking``. Words count by
BM25, and the built-in text encoder adds the similarity in meaning. Without the encoder's libraries,
words count alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from .meaning import similarities
from .texts import meaning_texts, weighted_words
from .words import WordIndex

__all__ = ["open_ranking"]

_WORDS_WEIGHT: Final = 0.8

Definition: TypeAlias = Mapping[str, Any]
"""The definition of a tool as in ``tools/list``."""


def open_ranking(definitions: Sequence[Definition]) -> Callable[[str], list[float]]:
    """Return a function that scores the tools for a query: a number for each, higher is better."""
    index = WordIndex([weighted_words(definition) for definition in definitions])
    texts = [meaning_texts(definition) for definition in definitions]

    def scores(query: str) -> list[float]:
        by_words = index.scores(query)
        by_meaning = similarities(query, texts)
        return [
            _WORDS_WEIGHT * words + meaning
            for words, meaning in zip(by_words, by_meaning, strict=True)
        ]

    return scores
