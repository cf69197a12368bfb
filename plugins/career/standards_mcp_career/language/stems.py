"""Bring inflected English words to one form: "teaching", "taught" and "teacher" to "teach"."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .lexicon import IRREGULAR, SUFFIXLESS

_LONGEST: Final = 40
_PLURALS: Final = (
    (re.compile(r"(?<=..)ies$"), "y"),
    (re.compile(r"(?<=ss|ch|sh|.x)es$"), ""),
    (re.compile(r"(?<=...)(?<![suio])s$"), ""),
)
_SUFFIXES: Final = (
    (re.compile(r"(?<=...)if(?:ied|ying|ication|icate|icated|y)$"), "if"),
    (re.compile(r"(?<=....)(?:ership|ship)$"), ""),
    (re.compile(r"(?<=....)sis$"), "s"),
    (re.compile(r"(?<=....)at(?:e|ed|ing|ion|or|ive)$"), ""),
    (re.compile(r"(?<=....)ical$"), "ic"),
    (re.compile(r"(?<=...)([ai])bility$"), r"\1ble"),
    (re.compile(r"(?<=.....)(?:ment|ist|ance|ant)$"), ""),
    (re.compile(r"(?<=..)ied$"), "y"),
    (re.compile(r"(?<=....)(?:er|or|ion)$"), ""),
    (re.compile(r"(?<=...)(?<!e)ed$"), ""),
    (re.compile(r"(?<=...)ing$"), ""),
)
_SHORT: Final = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]")
_ENDS: Final = (
    (re.compile(r"([^aeiou])\1$"), r"\1"),
    (re.compile(r"(?<=....)e$"), ""),
    (re.compile(r"(?<=....)[iy]$"), ""),
    (re.compile(r"iz$"), "is"),
)


def stem(word: str) -> str:
    """Return the form that stands for all inflections of a word in lower case."""
    return word if len(word) > _LONGEST else _stem(word)


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word in SUFFIXLESS or len(word) < 4 or not (word.isascii() and word.isalpha()):  # noqa: PLR2004
        return word.removesuffix("s") if word in SUFFIXLESS else word
    singular = _first(word, _PLURALS)
    if singular in SUFFIXLESS:
        return singular
    bare = _first(singular, _SUFFIXES)
    if bare != singular and _SHORT.fullmatch(bare):
        bare += "e"  # of "caring", beside "care" and apart from "car"
    for pattern, end in _ENDS:
        bare = pattern.sub(end, bare)
    return bare


def _first(word: str, rules: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    """Apply the first rule that changes a word."""
    return next((found for each, end in rules if (found := each.sub(end, word)) != word), word)
