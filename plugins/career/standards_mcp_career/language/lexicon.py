"""Word lists: what carries no meaning, what negates, and what is a number or a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    found = [(name.split(), words) for name, words in _LINES]
    return {word: int(name[1]) for name, words in found if name[0] == kind for word in words}


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
"""What makes a part of a claim say that something is only intended, or was lost."""
