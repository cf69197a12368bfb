"""Texts of web pages, made plain."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->", re.DOTALL)
_LINK: Final = re.compile(r"https?://[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_NESTED: Final = 2  # `&amp;#x27;`
_UNSEEN: Final = ("Cc", "Cf", "Cs")


def plain(text: object, longest: int | None = None) -> str:
    """Return a text without tags, entities and what steers a screen; empty for what is no text.

    Args:
        longest: How many characters are kept.
    """
    if not isinstance(text, str):
        return ""
    text = _TAG.sub("", text)
    for _ in range(_NESTED):
        text = html.unescape(text)
    seen = (" " if unicodedata.category(each) in _UNSEEN else each for each in text)
    return " ".join("".join(seen).split())[:longest]


def link(url: object) -> str | None:
    """Return an address of the web; None for anything else."""
    return url if isinstance(url, str) and _LINK.fullmatch(url) else None
