"""Parse cells: texts, prices, ratings, weights. Ambiguous values are None."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Final, cast

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MISSING: Final = ("", "nan", "none", "n/a")
_NUMBER: Final = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?")
_SIGNS: Final = (".", ",")
_WHOLE: Final = re.compile(r"[0-9]+")
_AMBIGUOUS: Final = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
"""Dollars and a fraction of a cent, or thousands."""
_CLEAR: Final = {
    sign: re.compile(
        rf"([0-9]{{1,3}}([{other}][0-9]{{3}})+|[0-9]+)?[{sign}][0-9]+|[0-9]{{1,3}}([{other}][0-9]{{3}}){{2,}}"
    )
    for sign, other in (_SIGNS, _SIGNS[::-1])
}
"""Unambiguous numbers, by their decimal sign."""
_AGREEING: Final = 0.9
_SIGN: Final = re.compile(
    r"\b[A-Z]{0,2}[$£¥\u20a0-\u20cf]|[$£¥\u20a0-\u20cf]"
    r"|(?<![A-Za-z])(?:USD|EUR|GBP|CAD|AUD|NZD|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|MXN|BRL|ZAR|SGD"
    r"|usd|eur|gbp|[Ee]uros?|[Dd]ollars?|kr\.?|zł|Kč|Rs\.?)(?![A-Za-z])"
)
# From the beginning of a run only, or a long run of dots would be read once for each dot.
_DIGITS: Final = re.compile(r"(?<![0-9.,])[0-9.,]*[0-9]")
_SIGNED: Final = re.compile(rf"\$ ?([0-9.,]*[0-9])|({_DIGITS.pattern}) ?\$")
_DASH: Final = r"\-\u2010-\u2015\u2212"
_SLASH: Final = r"/\u2044"
_TIMES: Final = r"x\u00d7"
_UNIT: Final = r"(per|an?|lbs?|pounds?|oz|ounces?)\b"
_QUOTE: Final = r"'\u2019"
_NOT_AFTER: Final = re.compile(
    rf"([^\W\d_]|[{_DASH}(<] ?|[0-9][ .,:{_QUOTE}]*|\bto ?)$", re.IGNORECASE
)
"""Text before a number that is not a price: ``-5``, ``(5)``, ``1 349``."""
_NOT_BEFORE: Final = re.compile(
    rf"[^\W\d_]| ?([%¢]|[km]|b(n|illion)?\b|thousand|lakh|crore|cents?\b|for [0-9])"
    rf"|( ?([{_DASH}]|to\b) ?\$? ?[0-9.,]+)?( ?\$)? ?([{_SLASH}]|{_UNIT})"
    rf"|[ .,:{_QUOTE}]*[0-9]| ?[{_DASH}]$",
    re.IGNORECASE,
)
"""Text after a number that is not a price: ``5k``, ``5%``, ``1/2``, ``5 per lb``, ``1 349``."""
_NO_PRICE: Final = re.compile(
    r"\b(was|were|save|off|discount|instead|down|get|packs?|shipping|delivery|postage|statt)\b",
    re.IGNORECASE,
)
"""Words of amounts other than the price: ``was $20``, ``$5 off``."""
_PRICE_WORDS: Final = re.compile(
    r"[ .,:*]*-?(?:\b(?:from|ab|about|approx|ca|circa|around|only|just|nur|now|our|total|price"
    r"|preis|each)\b[ .:*]*)*",
    re.IGNORECASE,
)
"""The only words allowed with a number without a currency."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_TO: Final = re.compile(r" ?(to|bis) ?", re.IGNORECASE)
_RATING: Final = re.compile(
    r"([0-9]+(?:\.[0-9]+|,[0-9]{1,2})?)(?:\s*(?:out\s+of|/)\s*5(?:[.,]0+)?)?(?:\s*stars?)?",
    re.IGNORECASE,
)
_OUNCES: Final = re.compile(
    r"(?:(?<![0-9.,])([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)|[\d\u00bc-\u00be\u2150-\u218b])"
    r"[\s-]*(?:fl\.?\s*)?(?:oz|ounces?)\b",
    re.IGNORECASE,
)
_PART: Final = re.compile(
    rf"[0-9] ?[{_DASH}{_SLASH}{_TIMES}{_QUOTE}]? ?$|[{_DASH}{_SLASH}]$"
    r"|[0-9] ?(lbs?|pounds?)\b[ .,&]*(and )?$",
    re.IGNORECASE,
)
"""Text before a number of ounces that is a part of another number."""
_ELEMENTS: Final = (
    "a|abbr|acronym|address|area|article|aside|audio|b|base|bdi|bdo|big|blockquote|body|br|button|"
    "canvas|caption|center|cite|code|col|colgroup|data|dd|del|details|dfn|dialog|dir|div|dl|dt|em|"
    "embed|fieldset|figcaption|figure|font|footer|form|frame|h[1-6]|head|header|hgroup|hr|html|i|"
    "iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|menu|meta|meter|nav|nobr|noscript|"
    "o:p|object|ol|optgroup|option|output|p|param|path|picture|pre|progress|q|rp|rt|ruby|s|samp|"
    "script|section|select|slot|small|source|span|strike|strong|style|sub|summary|sup|svg|table|"
    "tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
# Text such as "x<y and z>w" compares: a tag has a known name, and then nothing or attributes.
_TAG: Final = re.compile(
    r"<(?:script|style)\b[^<>]*>(?:(?!</?(?:script|style)\b).)*</(?:script|style) ?>"
    rf"|</?(?:{_ELEMENTS})(?: [^<>=]*=[^<>]*)? ?/?>|<!--(?:(?!<!--|-->).)*-->|<!doctype[^<>]*>",
    re.IGNORECASE,
)
_EXACT: Final = 2**53
_BEST: Final = 5


def text(value: object) -> str | None:
    """Return a text with single spaces, None for a missing one."""
    if isinstance(value, bool) or value is None:
        return None
    value = _simple(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, list):
        parts = [part for part in map(text, cast("list[object]", value)) if part]
        return " ".join(parts) or None
    if not isinstance(value, str | int | float):
        return None
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    joined = " ".join(_CONTROLS.sub(" ", whole).split())
    return None if joined.casefold() in _MISSING else joined


def without_tags(value: object) -> str | None:
    """Return a text as `text` does, without the tags, scripts and entities of HTML."""
    found = text(value)
    return found and text(html.unescape(_TAG.sub(" ", found)))


def is_missing(value: object) -> bool:
    """Return True for an empty cell and for marks such as ``n/a``."""
    return not isinstance(value, bool) and text(value) is None


@dataclass(frozen=True, slots=True)
class Notation:
    """The number format of a file, which decides prices such as ``1.299`` and ``1,299``.

    Attributes:
        decimal: The decimal sign, empty if unknown.
        thousands: The thousands separator, empty if unknown.
    """

    decimal: str = ""
    thousands: str = ","


def notation(cells: Iterable[object], delimiter: str) -> Notation:
    """Return the notation of a file, by its unambiguous prices.

    Without such prices, semicolons between cells suggest decimal commas. The notation is unknown
    if prices contradict each other.
    """
    texts = (text(cell) for cell in cells if _finite(cell) is None)
    clear = Counter(_clear_sign(_digits(each)) for each in texts if each)
    point, comma = (clear[sign] for sign in _SIGNS)
    if not point and not comma:
        return Notation(thousands="." if delimiter == ";" else ",")
    if max(point, comma) < _AGREEING * (point + comma):
        return Notation(thousands="")
    return Notation(".", ",") if point > comma else Notation(",", ".")


def price(value: object, written: Notation = Notation()) -> float | None:
    """Parse a price: the first number of a text, the low end of a range. None unless above zero.

    With a currency sign in the text, the price is the first number next to one, unless words such
    as "was" or a second amount make it doubtful. Otherwise the text must be a number, with words
    such as "from" at most. An irregular number such as 1,34,950.00 is ambiguous and gives None.

    Args:
        written: The notation of the file.
    """
    if (number := _finite(value)) is None and (cell := text(value)) is not None:
        number = _amount(_digits(cell), written)
    return number if number is not None and number > 0 else None


def rating(value: object) -> float | None:
    """Return a number from 0 to 5, as such or as in ``4.5 out of 5`` and ``4,5``."""
    if (number := _finite(value)) is None and (cell := text(value)) is not None:
        match = _RATING.fullmatch(cell)
        number = _number(match.group(1).replace(",", ".")) if match else None
    return number if number is not None and 0 <= number <= _BEST else None


def ounces(texts: Sequence[str | None]) -> float | None:
    """Return the first weight or volume in ounces in the texts.

    Parts of numbers, as in ``1/2 oz``, ``½ oz``, ``4-6 oz`` and ``5 lb 8 oz``, give None.
    """
    for cell in texts:
        if cell and (match := _OUNCES.search(cell)):
            is_part = match[1] is None or _PART.search(cell[: match.start()])
            return None if is_part else _number(match[1]) or None
    return None


def plain(value: object) -> str | float | bool | None:
    """Return a value of another field unchanged: a text, a number or a boolean.

    A whole number that the store would round is a text, such as an article number of 18 digits.
    """
    if isinstance(value, bool):
        return value
    value = _simple(value)
    is_rounded = isinstance(value, int) and abs(value) > _EXACT
    number = None if is_rounded else _finite(value)
    return text(value) if number is None else number


def _digits(cell: str) -> str:
    """Return the digits and signs of the price in a text, or an empty string."""
    # ½, ² and the digits of other scripts change the meaning of adjacent digits.
    if any(character.isnumeric() and not character.isascii() for character in cell):
        return ""
    plain_signs = " ".join(_SIGN.sub(" $ ", cell).split())
    is_signed = "$" in plain_signs
    amounts = list((_SIGNED if is_signed else _DIGITS).finditer(plain_signs))
    if not amounts:
        return ""
    match = amounts[0]
    before, after = plain_signs[: match.start()], plain_signs[match.end() :]
    if _NOT_AFTER.search(before) or _NOT_BEFORE.match(after):
        return ""
    if is_signed:
        is_clear = not _NO_PRICE.search(plain_signs) and _is_range(plain_signs, amounts)
    else:
        is_clear = all(map(_PRICE_WORDS.fullmatch, (before, after)))
    return match[match.lastindex or 0] if is_clear else ""


def _is_range(cell: str, amounts: Sequence[re.Match[str]]) -> bool:
    """Return True if no words separate the amounts; words would give each its own meaning."""
    between = (cell[one.end() : two.start()] for one, two in pairwise(amounts))
    return all(_TO.fullmatch(words) or not _LETTER.search(words) for words in between)


def _clear_sign(digits: str) -> str:
    """Return the decimal sign of an unambiguous number, else an empty string."""
    if _AMBIGUOUS.fullmatch(digits):
        return ""
    return next((sign for sign in _SIGNS if _CLEAR[sign].fullmatch(digits)), "")


def _amount(digits: str, written: Notation) -> float | None:
    sign = _clear_sign(digits)
    if _AMBIGUOUS.fullmatch(digits):
        mark = "." if "." in digits else ","
        # 12,999 may be about 13 or about 13,000, and a wrong price would be stated as a fact.
        sign = mark if mark == written.decimal else ""
        if mark == written.thousands:
            digits = digits.replace(mark, "")
    if not sign:
        return _number(digits) if _WHOLE.fullmatch(digits) else None
    other = "," if sign == "." else "."
    return _number(digits.replace(other, "").replace(sign, "."))


def _simple(value: object) -> object:
    """Return a decimal number of Parquet as a whole or a floating-point one."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value.is_finite() and value == int(value) else float(value)


def _finite(value: object) -> float | None:
    value = _simple(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _number(digits: str) -> float | None:
    if not digits or not _NUMBER.fullmatch(digits):
        return None
    number = float(digits.replace(",", ""))
    return number if math.isfinite(number) else None
