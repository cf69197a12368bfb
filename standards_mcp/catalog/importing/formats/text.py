"""Texts of public data as plain text: no markup, no stray space, nothing UTF-8 cannot hold."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final

LONGEST_TEXT: Final = 100_000
"""Longer descriptions are cut to this many characters."""

_INLINE: Final = "a|abbr|b|code|em|font|i|mark|s|small|span|strong|sub|sup|u"
_BLOCK: Final = (
    "blockquote|br|dd|div|dl|dt|figure|h[1-6]|hr|img|li|ol|p|pre|section|table|tbody|td|th|thead"
    "|tr|ul"
)
# A tag is a known name with attributes that are written name=value, so that "a < b and c > d"
# stays what it is.
_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+\s?=\s?(?:"[^"]*"|'[^']*'|[^\s"'<>]+))*\s?/?"""
_INLINE_TAG: Final = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK_TAG: Final = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.IGNORECASE)
_RAISED: Final = re.compile(r"<(su[pb])>([0-9n+\-=()]{1,8})</\1>", re.IGNORECASE)
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
# Not those that `str.split` takes for space; and the marks that turn the direction of a line.
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_SUPERSCRIPT: Final = str.maketrans("0123456789n+-=()", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁺⁻⁼⁽⁾")
_SUBSCRIPT: Final = str.maketrans("0123456789n+-=()", "₀₁₂₃₄₅₆₇₈₉ₙ₊₋₌₍₎")


def clean(text: str) -> str:
    """Return *text* on one line, without markup, with its entities resolved.

    Raised and lowered digits keep their meaning: ``x<sup>2</sup>`` becomes ``x²``. Other marks
    in them, such as the star of modelling standards, stand as they are. A text longer than
    `LONGEST_TEXT` is cut.
    """
    if _is_plain(text):
        return " ".join(text.split())  # nearly all texts; the rest takes several times as long
    text = " ".join(without_controls(text[: 2 * LONGEST_TEXT]).split())
    if "<" in text:
        text = _INLINE_TAG.sub("", _BLOCK_TAG.sub(" ", _RAISED.sub(_raised, text)))
    if "&" in text:
        text = without_controls(_ENTITY.sub(lambda match: html.unescape(match[0]), text))
    if not text.isprintable():
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
    return " ".join(text.split())[:LONGEST_TEXT]


def clean_all(texts: Sequence[str]) -> list[str]:
    """Return `clean` of each text, all of which are looked at together: most need nothing."""
    joined = "".join(texts)
    if _is_plain(joined) and "  " not in joined:
        return [text.strip() for text in texts]
    return [clean(text) for text in texts]


def _is_plain(text: str) -> bool:
    return len(text) < LONGEST_TEXT and text.isprintable() and "<" not in text and "&" not in text


def without_controls(text: str) -> str:
    """Return *text* without what would steer a terminal or turn a line; line ends stay."""
    return text if text.isprintable() else _CONTROL.sub("", text)


def _raised(match: re.Match[str]) -> str:
    table = _SUPERSCRIPT if match[1].lower() == "sup" else _SUBSCRIPT
    return match[2].translate(table)
