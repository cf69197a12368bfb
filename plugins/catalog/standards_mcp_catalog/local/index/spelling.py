"""Correct misspelt words of a query by the words of the index.

A word is replaced only if it is neither in the index nor English, and only by a similar word of the
index. English is the vocabulary of the built-in text encoder, with compounds and derived words.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import Final

from standards_mcp_encoders.minilm import whole_words

from .lexical import LexicalIndex, stems

LONGEST_TEXT: Final = 400
"""Characters; longer texts are not corrected, since enough of their words are known."""
# Capitals inside a text, or in both first words, make a name or an abbreviation; a word in quotes
# is meant as it is.
_WORD: Final = re.compile(
    r"(?<![\w./\"'\u2018\u201c-])(?:^[A-Z](?![a-z]+ [A-Z]))?[a-z]{3,}(?![\w/-]|\.\w)"
)
_PREFIX: Final = re.compile(
    "anti|co|inter|micro|mis|multi|non|out|over|pre|re|sub|super|trans|under|un"
)
_SUFFIX: Final = re.compile("(?:able|al|ed|en|er|ess|est|ful|ian|ing|ist|less|ly|ness|or|y)?s?$")
_SHORTEST_WORD: Final = 4
_LONG_WORD: Final = 8
# Letters that people take for each other, because they sound alike.
_SOUNDS: Final = ("aeiouy", "csz", "ckq", "dt", "fpv", "gj", "mn")
_ALIKE: Final = frozenset((one, other) for group in _SOUNDS for one in group for other in group)


class Spelling:
    """Corrects texts with the words of one index."""

    def __init__(self, lexical: LexicalIndex) -> None:
        self._lexical = lexical

    def corrected(self, text: str) -> str:
        """Return *text* with its misspelt words replaced."""
        if len(text) > LONGEST_TEXT or not (unknown := self._lexical.unknown_terms(text)):
            return text
        return _WORD.sub(lambda match: self._replacement(match[0], unknown), text)

    def _replacement(self, word: str, unknown: frozenset[str]) -> str:
        plain = word.lower()
        if len(plain) < _SHORTEST_WORD or not unknown.issuperset(stems(plain)):
            return word
        if self._is_english(plain):
            return word
        spelt = plain.replace("shun", "tion")
        near = (
            (distance, sorted(other) != sorted(plain), -count, other)
            for other, count in self._words.get(plain[0], {}).items()
            if not plain.startswith(other) and (distance := _distance(spelt, other)) is not None
        )
        return min(near, default=(0, False, 0, word))[-1]

    @cached_property
    def _words(self) -> dict[str, dict[str, int]]:
        """The words of the index by their first letter, with the number of their records."""
        by_letter = dict[str, dict[str, int]]()
        for word, count in self._lexical.words():
            by_letter.setdefault(word[0], {})[word] = count
        return by_letter

    def _is_english(self, word: str) -> bool:
        (stem,) = stems(word)
        if word in whole_words() or (len(stem) >= _SHORTEST_WORD and stem in _english_stems()):
            return True
        if (prefix := _PREFIX.match(word)) and self._has(word[prefix.end() :]):
            return True
        for suffix in _SUFFIX.finditer(word):
            base = word[: suffix.start()]
            single = base[:-1] if base[-2:-1] == base[-1:] else base  # stop, stopping
            if suffix[0] and any(map(self._has, (base, f"{base}e", f"{base}y", single))):
                return True
        cuts = range(_SHORTEST_WORD, len(word) - _SHORTEST_WORD + 1)
        return any(self._has(word[:cut]) and self._has(word[cut:]) for cut in cuts)

    def _has(self, word: str) -> bool:
        words = self._words.get(word[:1], {})
        return len(word) >= _SHORTEST_WORD and (word in words or f"{word}s" in words)


@cache
def _english_stems() -> frozenset[str]:
    return frozenset(stems(" ".join(whole_words())))


def _distance(word: str, other: str) -> int | None:
    """Return the number of edits between two words, or None if they are too many.

    An edit inserts or deletes a letter, swaps two neighbours, or changes a letter to one that
    sounds alike; any other change counts as two edits. A short word may have one edit, a long
    word two.
    """
    most = 1 if len(word) < _LONG_WORD else 2
    if abs(len(word) - len(other)) > most or len(set(word) ^ set(other)) > 2 * most:
        return None
    older, old, new = list[int](), list[int](), list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        older, old, new = old, new, [row]
        for column, beside in enumerate(other, 1):
            change = (letter != beside) * (1 if (letter, beside) in _ALIKE else 2)
            best = min(old[column] + 1, new[-1] + 1, old[column - 1] + change)
            if row > 1 < column and letter == other[column - 2] and word[row - 2] == beside:
                best = min(best, older[column - 2] + 1)
            new.append(best)
    return new[-1] if new[-1] <= most else None
