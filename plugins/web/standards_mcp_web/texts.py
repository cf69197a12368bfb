"""Sanitise texts and addresses of web pages."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final
from urllib.parse import quote, quote_plus, urlsplit

# `x<y and z>1` is a comparison: no tag has one of these letters as its name.
_COMPARISON: Final = r"[c-hj-ortv-z]\s[^<>=]*>"
_TAG: Final = re.compile(
    rf"<!--.*?(?:-->|\Z)|<(?!{_COMPARISON})[a-z/!][^<>]*>", re.DOTALL | re.IGNORECASE
)
_MAX_READ: Final = 4000
"""Longer texts are cut. Entities with more than 4,300 digits would raise an error."""
_UNESCAPE_ROUNDS: Final = 2  # `&amp;#x27;`
_INVISIBLE_CATEGORIES: Final = ("Cc", "Cf", "Cs")


def plain(text: object, max_length: int) -> str:
    """Return a text without tags, entities and control characters; "" if *text* is not a text.

    Args:
        max_length: Maximum number of characters.
    """
    if not isinstance(text, str):
        return ""
    # Before entities are decoded: a reader of `&lt;table&gt;` sees `<table>`, which belongs to the
    # text.
    text = _TAG.sub("", text[:_MAX_READ])
    for _ in range(_UNESCAPE_ROUNDS):
        text = html.unescape(text)
    visible = (" " if _is_invisible(character) else character for character in text)
    return " ".join("".join(visible).split())[:max_length]


def without(text: str, query: str, key: str) -> str:
    """Remove a query and a key from a plain text, including their URL-encoded forms.

    The key is removed everywhere, the query only as whole words.
    """
    text = re.sub(_spellings(key), "...", text, flags=re.IGNORECASE)
    return re.sub(rf"(?<!\w)(?:{_spellings(query)})(?!\w)", "...", text, flags=re.IGNORECASE)


def _spellings(secret: str) -> str:
    """Return a pattern for a non-empty text in plain and URL-encoded form."""
    spelled = (secret, plain(secret, _MAX_READ), quote(secret), quote_plus(secret))
    return "|".join(sorted(map(re.escape, filter(None, spelled)), key=len, reverse=True))


def link(url: object) -> str | None:
    """Return a valid http or https address, None for other values."""
    if not isinstance(url, str) or len(url) > _MAX_READ:
        return None
    if any(character.isspace() or _is_invisible(character) for character in url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _INVISIBLE_CATEGORIES
