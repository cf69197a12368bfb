"""Correct misspelt words of a query by the words of the index.

Only a word that neither the index nor English has is changed, and only to a similar word of the
index. English is the vocabulary of the built-in text encoder, with compounds and derived words.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import Final

from standards_mcp_encoders.minilm import whole_words

from .lexical import LexicalIndex, stems

LONGEST_TEXT: Final = 400
"""Characters of a text whose words are corrected; a longer one has enough words that are known."""
# A capital inside a text is a name, and capitals alone are an abbreviation.
_WORD: Final = re.compile(r"(?<![\w.-])(?:^[A-Z])?[a-z]{3,}(?![\w-]|\.\w)")
_PREFIX: Final = re.compile(
    "anti|co|inter|micro|mis|multi|non|out|over|pre|re|sub|super|trans|under|un"
)
_SUFFIX: Final = re.compile(
    "(?:able|al|ed|en|ent|er|ess|est|ful|ian|ing|ist|less|ly|ness|or|y)?s?$"
)
_SHORTEST_PART: Final = 4


class Spelling:
    """Corrects texts by the words of one index."""

    def __init__(self, lexical: LexicalIndex) -> None:
        self._lexical = lexical

    def corrected(self, text: str) -> str:
        """Return *text* with its misspelt words replaced, or an equal text without any."""
        if len(text) > LONGEST_TEXT or not (unknown := self._lexical.unknown_terms(text)):
            return text
        return _WORD.sub(lambda match: self._replacement(match[0], unknown), text)

    def _replacement(self, word: str, unknown: frozenset[str]) -> str:
        plain = word.lower()
        if len(plain) < _SHORTEST_PART or not unknown.issuperset(stems(plain)):
            return word
        if self._is_english(plain):
            return word
        near = (
            (distance, -count, other)
            for other, count in self._words.get(plain[0], {}).items()
            if (distance := _distance(plain, other)) is not None
        )
        return min(near, default=(0, 0, word))[2]

    @cached_property
    def _words(self) -> dict[str, dict[str, int]]:
        """The words of the index by their first letter, with the number of their records."""
        by_letter = dict[str, dict[str, int]]()
        for word, count in self._lexical.words():
            by_letter.setdefault(word[0], {})[word] = count
        return by_letter

    def _is_english(self, word: str) -> bool:
        if not _english_stems().isdisjoint(stems(word)):
            return True
        bases = [word[: match.start()] for match in _SUFFIX.finditer(word)]
        if prefix := _PREFIX.match(word):
            bases.append(word[prefix.end() :])
        candidates = {each for base in bases for each in (base, f"{base}e", f"{base}y", base[:-1])}
        if any(self._is_known(each) for each in candidates if each != word):
            return True
        cuts = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
        return any(self._is_known(word[:cut]) and self._is_known(word[cut:]) for cut in cuts)

    def _is_known(self, word: str) -> bool:
        if len(word) < _SHORTEST_PART:
            return False
        return word in whole_words() or word in self._words.get(word[0], ())


@cache
def _english_stems() -> frozenset[str]:
    return frozenset(stems(" ".join(whole_words())))


def _distance(word: str, other: str) -> int | None:
    """Return the number of edits between two words, or None if they are too many.

    An edit inserts, deletes or changes a letter, or swaps two neighbours. A short word has one at
    most, a longer one two.
    """
    most = 1 if len(word) < 8 else 2  # noqa: PLR2004
    if abs(len(word) - len(other)) > most or len(set(word) ^ set(other)) > 2 * most:
        return None
    older, old, new = list[int](), list[int](), list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        older, old, new = old, new, [row]
        for column, beside in enumerate(other, 1):
            best = min(old[column] + 1, new[-1] + 1, old[column - 1] + (letter != beside))
            if row > 1 < column and letter == other[column - 2] and word[row - 2] == beside:
                best = min(best, older[column - 2] + 1)
            new.append(best)
    return new[-1] if new[-1] <= most else None
