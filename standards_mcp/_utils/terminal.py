"""Colour and weight of output, for terminals only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TextIO, TypeAlias

import click

Look: TypeAlias = Mapping[str, Literal["strong", "quiet", "good", "warning", "bad"]]
"""Regular expressions without groups, each with the style of what it matches in a line."""

_STYLES: Final[dict[str, dict[str, Any]]] = {
    "strong": {"bold": True},
    "quiet": {"dim": True},
    "good": {"fg": "green"},
    "warning": {"fg": "yellow"},
    "bad": {"fg": "red", "bold": True},
}


def styled(text: str, look: Look, stream: TextIO) -> str:
    """Return *text* with its look, or as it is if the stream is no terminal with colours."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if not look or is_plain or not stream.isatty():
        return text
    styles = [_STYLES[name] for name in look.values()]
    pattern = re.compile("|".join(f"({part})" for part in look), re.MULTILINE)
    return pattern.sub(lambda part: click.style(part[0], **styles[(part.lastindex or 1) - 1]), text)
