"""Put foreign text into Markdown, so that it stays text."""

from __future__ import annotations

import re
import textwrap

_MARKS = re.compile(r"([\\`*_{}\[\]<>|~#])")


def inline(text: str, width: int = 160) -> str:
    """Return *text* in one line of at most *width* characters, with escaped marks of Markdown."""
    line = textwrap.shorten(text, width, placeholder=" ...") if len(text) > width else text
    return _MARKS.sub(r"\\\1", " ".join(line.split()))
