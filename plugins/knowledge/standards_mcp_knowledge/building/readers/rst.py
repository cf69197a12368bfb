"""Reads reStructuredText: its headings and its code. The rest stays as it is.

Docutils is not used: it takes the directives of Sphinx, which most such files have, for errors,
and leaves out what is in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from standards_mcp_knowledge.building.document import Document, Outline, clean

_RULE: Final = re.compile(r"([!-/:-@\[-`{-~])\1+\s*")
_CODE: Final = re.compile(r"\s*\.\. (code|code-block|sourcecode|parsed-literal|prompt)::")
_DIRECTIVE: Final = re.compile(r"\s*\.\. ")


def read_rst(text: str) -> Document:
    """Return the sections of *text*, which end at its headings."""
    lines = clean(text).split("\n")
    outline = Outline()
    styles: list[tuple[str, bool]] = []
    done = position = 0
    while position < len(lines):
        height = _height_of_heading(lines, position)
        end = position + height if height else _end_of_code(lines, position)
        if end == position:
            position += 1
            continue
        outline.add("\n".join(lines[done:position]))
        here = "\n".join(lines[position:end])
        if height:
            style = lines[end - 1][0], height > _UNDERLINED
            if style not in styles:
                styles.append(style)
            outline.start(lines[end - 2], styles.index(style) + 1, here)
        else:
            outline.add(here, is_code=True)
        done = position = end
    outline.add("\n".join(lines[done:]))
    return outline.document()


_UNDERLINED: Final = 2
_OVERLINED: Final = 3


def _height_of_heading(lines: Sequence[str], start: int) -> int:
    """Return how many lines the heading at *start* has: title and rule, or rule, title, rule."""
    if start and lines[start - 1].strip():
        return 0
    if _is_underlined(lines, start) and not lines[start][0].isspace():
        return _UNDERLINED
    over = lines[start].rstrip()
    if _is_underlined(lines, start + 1) and over == lines[start + 2].rstrip():
        return _OVERLINED
    return 0


def _is_underlined(lines: Sequence[str], start: int) -> bool:
    if start + 1 >= len(lines):
        return False
    title, rule = lines[start].rstrip(), lines[start + 1].rstrip()
    is_title = bool(title) and not _RULE.fullmatch(title)
    return is_title and bool(_RULE.fullmatch(rule)) and len(rule) >= len(title)


def _end_of_code(lines: Sequence[str], start: int) -> int:
    """Return the line after the code that begins with the line at *start*; *start* if none does.

    Code is what is indented more than the line before it that ends with two colons.
    """
    line = lines[start]
    is_literal = line.rstrip().endswith("::") and not _DIRECTIVE.match(line)
    if not is_literal and not _CODE.match(line):
        return start
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(line)):
        end += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
