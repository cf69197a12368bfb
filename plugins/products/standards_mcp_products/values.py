"""Parse cells: texts, prices, ratings, weights. Ambiguous values are None."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias, cast

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MISSING: Final = ("", "nan", "none", "n/a")
_DECIMAL_SIGNS: Final = (".", ",")
_AMBIGUOUS: Final = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
"""A number such as 1.299: a price with a fraction of a cent, or thousands."""
_UNAMBIGUOUS: Final = {
    sign: re.compile(
        rf"([0-9]{{1,3}}([{other}][0-9]{{3}})+|[0-9]+)?[{sign}][0-9]+|[0-9]{{1,3}}([{other}][0-9]{{3}}){{2,}}"
    )
    for sign, other in (_DECIMAL_SIGNS, _DECIMAL_SIGNS[::-1])
}
"""Unambiguous numbers, by their decimal sign."""
_MIN_AGREEMENT: Final = 0.9
_CURRENCY: Final = re.compile(
    r"\b[A-Z]{0,2}[$£¥\u20a0-\u20cf]|[$£¥\u20a0-\u20cf]"
    r"|(?<![A-Za-z])(?:USD|EUR|GBP|CAD|AUD|NZD|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|MXN|BRL|ZAR|SGD"
    r"|usd|eur|gbp|[Ee]uros?|[Dd]ollars?|kr\.?|zł|Kč|Rs\.?)(?![A-Za-z])"
)
_DASH: Final = r"\-\u2010-\u2015\u2212"
_PRICE_WORDS: Final = (
    r"(?:\b(?:from|ab|about|approx|ca|circa|around|starting at|only|just|nur|now|our|your|total"
    r"|price|preis|each|sale|special|list|regular|retail|msrp|rrp)\b[ .:*]*)*"
)
"""Words allowed with a price. With others, such as "was", the number may be another amount."""
_DIGITS: Final = r"[0-9.,]*[0-9]"
_END: Final = rf"(?:[.,]-{{0,2}})?[ :*]*{_PRICE_WORDS}"
_PRICE: Final = re.compile(
    rf"{_PRICE_WORDS}({_DIGITS}){_END}"
    rf"|{_PRICE_WORDS}(?:[0-9]+ for )?(?:\$ ?({_DIGITS})(?: ?\$)?|({_DIGITS}) ?\$)"
    rf"(?: ?(?:[{_DASH}]|to|bis) ?\$? ?{_DIGITS}(?: ?\$)?| ?\$ ?{_DIGITS})*"
    rf"(?: ?\( ?\$ ?{_DIGITS} ?(?:/|per|an?) ?[a-z. ]+\))?{_END}",
    re.IGNORECASE,
)
"""A price, with or without a currency: ``from 5``, ``$3.25 - $8``, ``$5 ($0.50 per oz)``."""
_MAX_PRICE_LENGTH: Final = 100
_RATING: Final = re.compile(
    r"([0-9]+(?:\.[0-9]+|,[0-9]{1,2})?)(?:\s*(?:out\s+of|/)\s*5(?:[.,]0+)?)?(?:\s*stars?)?",
    re.IGNORECASE,
)
_OUNCES: Final = re.compile(
    r"(?:(?<![0-9.,])((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"|[\d\u00bc-\u00be\u2150-\u218b])"
    r"[\s-]*(?:fl\.?\s*)?(?:oz|ounces?)\b",
    re.IGNORECASE,
)
_PART_BEFORE: Final = re.compile(
    rf"[0-9] ?[{_DASH}/\u2044x\u00d7'\u2019]? ?$|[{_DASH}/\u2044]$"
    r"|[0-9] ?(lbs?|pounds?)\b[ .,&]*(and )?$",
    re.IGNORECASE,
)
"""Text before a number of ounces that makes it a part of another number."""
# Not for comparisons such as "x<y and z>w": only attributes may follow the name of a tag.
_TAG: Final = re.compile(
    r"<(?:script|style)\b[^<>]*>(?:(?!</?(?:script|style)\b).)*</(?:script|style) ?>"
    r"|</?[a-z][a-z0-9:-]*(?: [^<>=]*=[^<>]*)? ?/?>|<!--(?:(?!<!--|-->).)*-->|<!doctype[^<>]*>",
    re.IGNORECASE,
)
_MAX_EXACT: Final = 2**53
_MAX_RATING: Final = 5


def text(value: object) -> str | None:
    """Return a text with single spaces, None for a missing one."""
    value = _without_decimal(value)
    if isinstance(value, list):
        return text(" ".join(filter(None, map(text, cast("list[object]", value)))))
    if isinstance(value, float) and math.isfinite(value):
        value = int(value) if value.is_integer() else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    joined = " ".join(_CONTROLS.sub(" ", whole).split())
    return None if joined.casefold() in _MISSING else joined


def without_tags(value: object) -> str | None:
    """Return a text as `text` does, without HTML tags and scripts, and with entities decoded."""
    marked_up = text(value)
    return marked_up and text(html.unescape(_TAG.sub(" ", marked_up)))


def is_missing(value: object) -> bool:
    """Return True for an empty cell and for marks such as ``n/a``."""
    return not isinstance(value, bool) and text(value) is None


Notation: TypeAlias = tuple[str, str]
"""The decimal sign and the thousands separator of a file, each empty if unknown.

They decide prices such as ``1.299`` and ``1,299``.
"""


def detect_notation(cells: Iterable[object], delimiter: str) -> Notation:
    """Detect the notation of a file by its unambiguous prices.

    Without such prices, semicolons between cells suggest decimal commas. The notation is unknown
    if prices contradict each other.
    """
    texts = (text(cell) for cell in cells if _finite_number(cell) is None)
    signs = Counter(_decimal_sign(_price_digits(cell)) for cell in texts if cell)
    point, comma = (signs[sign] for sign in _DECIMAL_SIGNS)
    if not point and not comma:
        return "", "." if delimiter == ";" else ","
    if max(point, comma) < _MIN_AGREEMENT * (point + comma):
        return "", ""
    return (".", ",") if point > comma else (",", ".")


def price(value: object, notation: Notation = ("", ",")) -> float | None:
    """Parse a price, or the low end of a range of prices. Return None for zero and below.

    Return None, too, for a number with words other than `_PRICE_WORDS`, and for an ambiguous
    number, such as 1,34,950.00.

    Args:
        notation: The notation of the file.
    """
    if (number := _finite_number(value)) is None and (cell := text(value)) is not None:
        number = _parse_amount(_price_digits(cell), notation)
    return number if number is not None and number > 0 else None


def rating(value: object) -> float | None:
    """Parse a rating from 0 to 5, such as ``4.5``, ``4,5`` or ``4.5 out of 5``."""
    if (number := _finite_number(value)) is None and (cell := text(value)) is not None:
        match = _RATING.fullmatch(cell)
        number = float(match[1].replace(",", ".")) if match else None
    return number if number is not None and 0 <= number <= _MAX_RATING else None


def ounces(texts: Sequence[str | None]) -> float | None:
    """Return the first weight or volume in ounces in the texts.

    Parts of numbers, as in ``1/2 oz``, ``½ oz``, ``4-6 oz`` and ``5 lb 8 oz``, give None.
    """
    for cell in texts:
        if cell and (match := _OUNCES.search(cell)):
            is_part = match[1] is None or _PART_BEFORE.search(cell[: match.start()])
            return None if is_part else float(match[1].replace(",", "")) or None
    return None


def plain(value: object) -> str | float | bool | None:
    """Return the value of an additional field: a text, a number or a boolean.

    A whole number that the store would round, such as an article number of 18 digits, becomes text.
    """
    if isinstance(value, bool):
        return value
    value = _without_decimal(value)
    is_rounded = isinstance(value, int) and abs(value) > _MAX_EXACT
    number = None if is_rounded else _finite_number(value)
    return text(value) if number is None else number


def _price_digits(cell: str) -> str:
    """Return the digits and separators of the price in a text, or an empty string."""
    # ½, ² and the digits of other scripts change the meaning of adjacent digits.
    has_other_digits = any(character.isnumeric() and not character.isascii() for character in cell)
    if has_other_digits or len(cell) > _MAX_PRICE_LENGTH:
        return ""
    match = _PRICE.fullmatch(" ".join(_CURRENCY.sub(" $ ", cell).split()))
    return match[match.lastindex or 0] if match else ""


def _decimal_sign(digits: str) -> str:
    """Return the decimal sign of an unambiguous number, else an empty string."""
    if _AMBIGUOUS.fullmatch(digits):
        return ""
    return next((sign for sign in _DECIMAL_SIGNS if _UNAMBIGUOUS[sign].fullmatch(digits)), "")


def _parse_amount(digits: str, notation: Notation) -> float | None:
    decimal = _decimal_sign(digits)
    if _AMBIGUOUS.fullmatch(digits):
        # 12,999 may be about 13 or about 13,000, and a wrong price would be stated as a fact.
        decimal, thousands = notation
        if decimal not in digits or not decimal:
            decimal, digits = "", digits.replace(thousands, "")
    if decimal:
        thousands = "," if decimal == "." else "."
        return float(digits.replace(thousands, "").replace(decimal, "."))
    return float(digits) if digits.isdigit() else None


def _without_decimal(value: object) -> object:
    """Convert a `Decimal`, as Parquet has, to an int or a float; keep other values."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value.is_finite() and value == int(value) else float(value)


def _finite_number(value: object) -> float | None:
    value = _without_decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
