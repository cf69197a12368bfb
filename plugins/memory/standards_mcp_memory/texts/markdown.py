"""Stored texts in Markdown, so that none of them can pass for anything else."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>()#+\-!|~]")
_TICKS: Final = re.compile(r"`+")
_FENCE: Final = 3


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters and runs of white space."""
    seen = (" " if unicodedata.category(each) in _UNSEEN else each for each in text)
    return " ".join("".join(seen).split())


def inline(text: str) -> str:
    """Return a text in one line in which no character has a meaning in Markdown."""
    line = _SPECIAL.sub(lambda found: "\\" + found[0], one_line(text))
    # A line of these alone makes a heading of the one above it.
    return f"\\{line}" if line and not line.strip("=") else line


def fenced(text: str) -> str:
    """Return a text in a fence that nothing in it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(_FENCE, longest + 1)
    return f"{fence}\n{text}\n{fence}"
