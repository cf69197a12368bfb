"""Sanitise texts and addresses of web pages."""

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
"""Longer texts are cut. Entities with more than 4,300 digits would raise an error."""
_NESTED: Final = 2  # `&amp;#x27;`
_UNSEEN: Final = ("Cc", "Cf", "Cs")


def plain(text: object, longest: int) -> str:
    """Return a text without tags, entities and control characters; empty for other values.

    Args:
        longest: Maximum number of characters.
    """
    if not isinstance(text, str):
        return ""
    # Before entities are decoded: a reader of `&lt;table&gt;` sees `<table>`, which belongs to the
    # text.
    text = _TAG.sub("", text[:_READ])
    for _ in range(_NESTED):
        text = html.unescape(text)
    visible = (" " if _is_unseen(character) else character for character in text)
    return " ".join("".join(visible).split())[:longest]


def without(text: str, query: str, key: str) -> str:
    """Remove a query and a key from a plain text, including their URL-encoded forms.

    The key is removed everywhere, the query only as whole words.
    """
    text = re.sub(_spellings(key), "...", text, flags=re.IGNORECASE)
    return re.sub(rf"(?<!\w)(?:{_spellings(query)})(?!\w)", "...", text, flags=re.IGNORECASE)


def _spellings(secret: str) -> str:
    """Return a pattern for all forms of a non-empty text."""
    spelled = (secret, plain(secret, _READ), quote(secret), quote_plus(secret))
    return "|".join(sorted(map(re.escape, filter(None, spelled)), key=len, reverse=True))


def link(url: object) -> str | None:
    """Return a valid http or https address, None for other values."""
    if not isinstance(url, str) or len(url) > _READ:
        return None
    if any(character.isspace() or _is_unseen(character) for character in url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN
