"""Word lists and stems: stop words, negations, numbers, units and inflected English words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final


def _lines() -> Iterator[tuple[str, list[str]]]:
    """Yield the kind and the words of each line of the file."""
    for line in Path(__file__).with_name("words.txt").read_text("utf-8").splitlines():
        kind, colon, words = line.partition(": ")
        if colon and not line.startswith("#"):
            yield kind, words.split()


_LINES: Final = list(_lines())


def _words(kind: str) -> frozenset[str]:
    return frozenset(word for name, words in _LINES if name == kind for word in words)


def _numbers(kind: str) -> dict[str, int]:
    kinds = [(name.split(), words) for name, words in _LINES]
    return {word: int(name[1]) for name, words in kinds if name[0] == kind for word in words}


STOP_WORDS: Final = _words("stop")
GENERIC_WORDS: Final = _words("generic")
GENERIC_PARTS: Final = _words("part")
"""Generic words of scripts that put no space between words."""
NEGATORS: Final = _words("negator")
CONTRASTS: Final = _words("contrast")
CONJUNCTIONS: Final = _words("conjunction")
ALTERNATIVES: Final = _words("alternative")
BELOW: Final = _words("below")
MOST: Final = _words("most")
ABOVE: Final = _words("above")
LEAST: Final = _words("least")
ABOUT: Final = _words("about")
TIES: Final = _words("tie")
SPANS: Final = _words("span")
AGES: Final = _words("age")
TURNS: Final = _words("turn")
RELATIVES: Final = _words("relative")
ARTICLES: Final = _words("article")
LABELS: Final = _words("label")
SEVERAL: Final = _words("several")
GAINS: Final = _words("gain")
ANYBODY: Final = _words("anybody")
FRACTIONS: Final = _words("fraction")
SUFFIXLESS: Final = _words("whole")
"""Words that only look as if they had a suffix."""
IRREGULAR: Final[Mapping[str, str]] = {
    word: kind.split()[1] for kind, words in _LINES if kind.startswith("stem ") for word in words
}
NUMBERS: Final[Mapping[str, int]] = _numbers("number")
MULTIPLES: Final[Mapping[str, int]] = _numbers("multiple")
UNITS: Final[Mapping[str, tuple[str, int]]] = {
    word: (kind.split()[1], int(kind.split()[2]))
    for kind, words in _LINES
    if kind.startswith("unit ")
    for word in words
}
"""The dimension of a unit, and how many of the smallest unit of it."""
DENIALS: Final = (
    r"\b(?:interested in|interest in|would (?:like|love)|(?:plan|hope|want|wish|aim|try|tried)(?:s|"
    r"ed|ning)? to|eager to|dropped out|fail(?:s|ed|ing)?|expired|lapsed|revoked|studying for|"
    r"learning to|will have|everything but|anything but|apart from)\b"
)
"""Phrases that mark a part of a claim as an intention or a loss."""


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
    """Return the common form of all inflections of a lowercase word."""
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
        bare += "e"  # "caring" becomes "care", not "car"
    for pattern, end in _ENDS:
        bare = pattern.sub(end, bare)
    return bare


def _first(word: str, rules: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    """Apply the first rule that changes a word."""
    return next(
        (singular for pattern, end in rules if (singular := pattern.sub(end, word)) != word), word
    )
