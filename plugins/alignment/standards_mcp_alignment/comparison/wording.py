"""Differences between two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from standards_mcp_alignment.markdown import inline


class Piece(NamedTuple):
    """A run of words that both texts have, or that only one has."""

    change: Literal["same", "removed", "added"]
    text: str


def word_diff(left: str, right: str) -> list[Piece]:
    """Return the pieces that make *right* out of *left*, in the order of the text."""
    return list(_pieces(re.findall(r"\S+", left), re.findall(r"\S+", right)))


def _pieces(left: list[str], right: list[str]) -> Iterator[Piece]:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag == "equal":
            yield Piece("same", " ".join(left[start:end]))
            continue
        if end > start:
            yield Piece("removed", " ".join(left[start:end]))
        if other_end > other_start:
            yield Piece("added", " ".join(right[other_start:other_end]))


def marked(pieces: Iterable[Piece]) -> str:
    """Return a difference in one line: ``Compare [-two-] {+three+} fractions``."""
    forms = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return " ".join(forms[each.change].format(each.text) for each in pieces)


def marked_up(pieces: Iterable[Piece]) -> str:
    """Return a difference as Markdown: removed words are crossed out, added ones are bold."""
    forms = {"same": "{}", "removed": "~~{}~~", "added": "**{}**"}
    return " ".join(forms[each.change].format(inline(each.text, 400)) for each in pieces)
