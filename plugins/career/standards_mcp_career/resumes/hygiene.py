"""One form for the Markdown of resumes, so that equal content has equal hashes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_MOST_BLANK: Final = 2
_HEADING: Final = re.compile(r"(#++)\s*+(.+)")
_FENCE: Final = re.compile(r" {0,3}(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")


def normalise(text: str) -> str:
    """Return a text with clean line ends, few blank lines and regular headings.

    What stands in code fences keeps its ``#``. A line feed ends the text only if one did before.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
    lines = list(_headed(_thinned(line.rstrip() for line in body.split("\n"))))
    while not end and lines and not lines[-1]:
        lines.pop()  # nothing but spaces was there
    return "\n".join(lines) + end


def _thinned(lines: Iterable[str]) -> Iterator[str]:
    blank = 0
    for line in lines:
        blank = 0 if line else blank + 1
        if blank <= _MOST_BLANK:
            yield line


def _headed(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        marks = _FENCE.fullmatch(line)
        if fence:
            yield line
            if marks and marks["marks"].startswith(fence) and not marks["info"]:
                fence = ""
        elif marks:
            yield line
            fence = marks["marks"]
        else:
            heading = _HEADING.fullmatch(line)
            yield f"{heading[1]} {heading[2]}" if heading else line
