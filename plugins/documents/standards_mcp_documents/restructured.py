"""Read reStructuredText as documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .document import Block, Document, Outline, clean

_RULE: Final = re.compile(r"([!-/:-@\[-`{-~])\1+\s*")
_CODE_DIRECTIVE: Final = re.compile(r"\s*\.\. (code|code-block|sourcecode|parsed-literal|prompt)::")
_DIRECTIVE: Final = re.compile(r"\s*\.\. ")


def read_rst(text: str) -> Document:
    """Read reStructuredText as a document with a section for each heading.

    Docutils is not used, because it reports the directives of Sphinx as errors and drops their
    contents.
    """
    lines = clean(text).split("\n")
    outline = Outline()
    styles: list[tuple[str, bool]] = []
    next_line = position = 0
    while position < len(lines):
        height = _height_of_heading(lines, position)
        end = position + height if height else _end_of_code(lines, position)
        if end == position:
            position += 1
            continue
        outline.add("\n".join(lines[next_line:position]))
        block = "\n".join(lines[position:end])
        if height:
            style = lines[end - 1][0], height > _UNDERLINED_HEIGHT
            if style not in styles:
                styles.append(style)
            outline.start(lines[end - 2], styles.index(style) + 1, Block(clean(block)))
        else:
            outline.add(block, is_code=True)
        next_line = position = end
    outline.add("\n".join(lines[next_line:]))
    return outline.document()


_UNDERLINED_HEIGHT: Final = 2
_OVERLINED_HEIGHT: Final = 3


def _height_of_heading(lines: Sequence[str], start: int) -> int:
    """Return the number of lines of the heading at *start*: 2 if underlined, 3 with overline."""
    if start and lines[start - 1].strip():
        return 0
    if _is_underlined(lines, start) and not lines[start][0].isspace():
        return _UNDERLINED_HEIGHT
    over = lines[start].rstrip()
    if _is_underlined(lines, start + 1) and over == lines[start + 2].rstrip():
        return _OVERLINED_HEIGHT
    return 0


def _is_underlined(lines: Sequence[str], start: int) -> bool:
    if start + 1 >= len(lines):
        return False
    title, rule = lines[start].rstrip(), lines[start + 1].rstrip()
    is_title = bool(title) and not _RULE.fullmatch(title)
    return is_title and bool(_RULE.fullmatch(rule)) and len(rule) >= len(title)


def _end_of_code(lines: Sequence[str], start: int) -> int:
    """Return the line after the code block at *start*; *start* if there is no code block.

    A code block follows a line that ends with two colons, and is indented more than that line.
    """
    line = lines[start]
    is_literal = line.rstrip().endswith("::") and not _DIRECTIVE.match(line)
    if not is_literal and not _CODE_DIRECTIVE.match(line):
        return start
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(line)):
        end += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
