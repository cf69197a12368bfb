"""Parse cells: texts, prices, ratings, weights. Ambiguous values are None."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, cast

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MISSING: Final = ("", "nan", "none", "n/a")
_NUMBER: Final = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?")
_SIGNS: Final = (".", ",")
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
_DASH: Final = r"\-\u2010-\u2015\u2212"
_WORDS: Final = (
    r"(?:\b(?:from|ab|about|approx|ca|circa|around|starting at|only|just|nur|now|our|your|total"
    r"|price|preis|each|sale|special|list|regular|retail|msrp|rrp)\b[ .:*]*)*"
)
"""The words allowed with a price. With "was" or "shipping", it may be another amount."""
_DIGITS: Final = r"[0-9.,]*[0-9]"
_END: Final = rf"(?:[.,]-{{0,2}})?[ :*]*{_WORDS}"
_PRICE: Final = re.compile(
    rf"{_WORDS}({_DIGITS}){_END}"
    rf"|{_WORDS}(?:[0-9]+ for )?(?:\$ ?({_DIGITS})(?: ?\$)?|({_DIGITS}) ?\$)"
    rf"(?: ?(?:[{_DASH}]|to|bis) ?\$? ?{_DIGITS}(?: ?\$)?| ?\$ ?{_DIGITS})*"
    rf"(?: ?\( ?\$ ?{_DIGITS} ?(?:/|per|an?) ?[a-z. ]+\))?{_END}",
    re.IGNORECASE,
)
"""A number, or one with a currency: ``from 5``, ``$3.25 - $8``, ``$5 ($0.50 per oz)``."""
_LONGEST_PRICE: Final = 100
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
    rf"[0-9] ?[{_DASH}/\u2044x\u00d7'\u2019]? ?$|[{_DASH}/\u2044]$"
    r"|[0-9] ?(lbs?|pounds?)\b[ .,&]*(and )?$",
    re.IGNORECASE,
)
"""Text before a number of ounces that is a part of another number."""
# Text such as "x<y and z>w" compares: after the name of a tag comes nothing, or attributes.
_TAG: Final = re.compile(
    r"<(?:script|style)\b[^<>]*>(?:(?!</?(?:script|style)\b).)*</(?:script|style) ?>"
    r"|</?[a-z][a-z0-9:-]*(?: [^<>=]*=[^<>]*)? ?/?>|<!--(?:(?!<!--|-->).)*-->|<!doctype[^<>]*>",
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
    marked_up = text(value)
    return marked_up and text(html.unescape(_TAG.sub(" ", marked_up)))


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
    clear = Counter(_clear_sign(_digits(cell)) for cell in texts if cell)
    point, comma = (clear[sign] for sign in _SIGNS)
    if not point and not comma:
        return Notation(thousands="." if delimiter == ";" else ",")
    if max(point, comma) < _AGREEING * (point + comma):
        return Notation(thousands="")
    return Notation(".", ",") if point > comma else Notation(",", ".")


def price(value: object, written: Notation = Notation()) -> float | None:
    """Parse a price: a number, or the low end of a range. None unless above zero.

    Other words than "from" and the like make a price doubtful, and a number such as 1,34,950.00 is
    ambiguous: None.

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
    is_odd = any(character.isnumeric() and not character.isascii() for character in cell)
    if is_odd or len(cell) > _LONGEST_PRICE:
        return ""
    match = _PRICE.fullmatch(" ".join(_SIGN.sub(" $ ", cell).split()))
    return match[match.lastindex or 0] if match else ""


def _clear_sign(digits: str) -> str:
    """Return the decimal sign of an unambiguous number, else an empty string."""
    if _AMBIGUOUS.fullmatch(digits):
        return ""
    return next((sign for sign in _SIGNS if _CLEAR[sign].fullmatch(digits)), "")


def _amount(digits: str, written: Notation) -> float | None:
    decimal = _clear_sign(digits)
    if _AMBIGUOUS.fullmatch(digits):
        # 12,999 may be about 13 or about 13,000, and a wrong price would be stated as a fact.
        decimal = written.decimal if written.decimal in digits else ""
        digits = digits.replace(written.thousands, "") if not decimal else digits
    if decimal:
        thousands = "," if decimal == "." else "."
        return _number(digits.replace(thousands, "").replace(decimal, "."))
    return _number(digits) if digits.isdigit() else None


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
