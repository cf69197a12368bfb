"""Texts of web pages, made plain."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final
from urllib.parse import quote, quote_plus, urlsplit

# `x<y and z>1` is a comparison: no tag has one of these letters as its name.
_COMPARED: Final = r"[c-hj-ortv-z]\s[^<>=]*>"
_TAG: Final = re.compile(
    rf"<!--.*?(?:-->|\Z)|<(?!{_COMPARED})[a-z/!][^<>]*>", re.DOTALL | re.IGNORECASE
)
_READ: Final = 4000
"""How much of a text is looked at. Entities with more digits than 4,300 would raise."""
_NESTED: Final = 2  # `&amp;#x27;`
_UNSEEN: Final = ("Cc", "Cf", "Cs")


def plain(text: object, longest: int) -> str:
    """Return a text without tags, entities and what steers a screen; empty for what is no text.

    Args:
        longest: How many characters are kept.
    """
    if not isinstance(text, str):
        return ""
    text = _TAG.sub("", text[:_READ])
    for _ in range(_NESTED):
        text = html.unescape(text)
    seen = (" " if _is_unseen(each) else each for each in text)
    return " ".join("".join(seen).split())[:longest]


def without(text: str, *secrets: str) -> str:
    """Return a plain text without texts that must not be shown, also as an address has them."""
    spelled = (
        form
        for each in secrets
        for form in (each, plain(each, _READ), quote(each), quote_plus(each))
        if form
    )
    ordered = sorted(map(re.escape, spelled), key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(ordered)})(?!\w)"
    return re.sub(pattern, "...", text, flags=re.IGNORECASE)


def link(url: object) -> str | None:
    """Return an address of the web; None for anything else."""
    if not isinstance(url, str) or len(url) > _READ:
        return None
    if any(each.isspace() or _is_unseen(each) for each in url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN
