"""Texts of public data as plain text: no markup, no stray space, nothing UTF-8 cannot hold."""

from __future__ import annotations

import html
import re
from typing import Final

LONGEST_TEXT: Final = 100_000
"""Longer descriptions are cut to this many characters."""

_LOOK: Final = 400
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
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ufeff]")
_SUPERSCRIPT: Final = str.maketrans("0123456789n+-=()", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁺⁻⁼⁽⁾")
_SUBSCRIPT: Final = str.maketrans("0123456789n+-=()", "₀₁₂₃₄₅₆₇₈₉ₙ₊₋₌₍₎")


def clean(text: str) -> str:
    """Return *text* on one line, without markup, with its entities resolved.

    Raised and lowered digits keep their meaning: ``x<sup>2</sup>`` becomes ``x²``. Other marks
    in them, such as the star of modelling standards, stand as they are. A text longer than
    `LONGEST_TEXT` is cut.
    """
    text = " ".join(_CONTROL.sub("", text[: 2 * LONGEST_TEXT]).split())
    if "<" in text:
        text = _INLINE_TAG.sub("", _BLOCK_TAG.sub(" ", _RAISED.sub(_raised, text)))
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text
    return " ".join(text.split())[:LONGEST_TEXT]


def decode(data: bytes) -> tuple[str, str]:
    """Return (text, encoding): UTF-16 by its mark or its zeros, else UTF-8, else Windows-1252.

    Bytes that Windows-1252 does not define become replacement characters.
    """
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace"), encoding
    # Every second byte of plain letters is zero; text in other encodings has no zeros at all.
    start = data[:_LOOK]
    for offset, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = start[offset::2].count(0)
        if zeros > len(start) // 4 and not start[1 - offset :: 2].count(0):
            return data.decode(encoding, "replace"), encoding
    try:
        return data.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "windows-1252"


def _raised(match: re.Match[str]) -> str:
    table = _SUPERSCRIPT if match[1].lower() == "sup" else _SUBSCRIPT
    return match[2].translate(table)
