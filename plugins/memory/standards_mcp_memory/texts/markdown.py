"""Stored texts in Markdown, so that none of them can pass for anything else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>()#+\-!|~]")
_START: Final = re.compile(r"^([0-9]*)(\.(?=\s|$)|=+$)")
_TICKS: Final = re.compile(r"`+")
_FENCE: Final = 3


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters and runs of white space."""
    seen = (" " if unicodedata.category(each) in _UNSEEN else each for each in text)
    return " ".join("".join(seen).split())


def inline(text: str) -> str:
    """Return a text in one line in which no character has a meaning in Markdown."""
    line = _SPECIAL.sub(lambda found: "\\" + found[0], one_line(text))
    # What means something at the start of a line alone: an item of a list, a heading's underline.
    return _START.sub(r"\1\\\2", line)


def no_collection(name: str, known: Iterable[str], shown: Callable[[str], str] = one_line) -> str:
    """Return that there is no such collection, and which there are.

    Args:
        shown: How a name is written.
    """
    names = ", ".join(map(shown, known))
    there = f"There are: {names}." if names else "There are none yet."
    return f"Collection {shown(name)} not found. {there}"


def fenced(text: str) -> str:
    """Return a text in a fence that nothing in it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(_FENCE, longest + 1)
    return f"{fence}\n{text}\n{fence}"
