"""Values of cells: texts, prices, ratings, weights. What cannot be read for sure is None."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, cast

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MISSING: Final = ("", "nan", "none", "n/a")
_TOKEN: Final = re.compile(r"([-\u2212]\s*)?([0-9.,]*[0-9])(\s*%|[eE][+-]?[0-9])?")
"""A number, with what makes it no price before or after it."""
_NUMBER: Final = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?")
_SIGNS: Final = re.compile(r"[$€£¥₹]|\b(?:US)?\$|\bUSD\b")
_RATING: Final = re.compile(
    r"([0-9]+(?:\.[0-9]+)?)(?:\s*(?:out\s+of|/)\s*5(?:\.0+)?)?(?:\s*stars?)?", re.IGNORECASE
)
_OUNCES: Final = re.compile(
    r"(?<![0-9.,])([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)[\s-]*(?:fl\.?\s*)?(?:oz|ounces?)\b",
    re.IGNORECASE,
)
_BEST: Final = 5


def text(value: object) -> str | None:
    """Return a text with single spaces; None where there is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, list):
        parts = [each for each in map(text, cast("list[object]", value)) if each]
        return " ".join(parts) or None
    if not isinstance(value, str | int | float):
        return None
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    joined = " ".join(_CONTROLS.sub(" ", whole).split())
    return None if joined.casefold() in _MISSING else joined


def is_missing(value: object) -> bool:
    """Tell whether a cell is empty, or says that nothing is known."""
    return not isinstance(value, bool) and text(value) is None


def price(value: object) -> float | None:
    """Return the first number of a text, the low end of a range; None unless it is above zero.

    A number that has no regular form, such as 12,99, is none: nobody can tell what it means.
    """
    if (number := _finite(value)) is None and (found := text(value)) is not None:
        token = _TOKEN.search(_SIGNS.sub("", found))
        if token and not (token.group(1) or token.group(3)):
            number = _number(token.group(2).lstrip(","))
    return number if number is not None and number > 0 else None


def rating(value: object) -> float | None:
    """Return a number from 0 to 5, as such or as in ``4.5 out of 5``."""
    if (number := _finite(value)) is None and (found := text(value)) is not None:
        match = _RATING.fullmatch(found)
        number = _number(match.group(1)) if match else None
    return number if number is not None and 0 <= number <= _BEST else None


def ounces(texts: Sequence[str | None]) -> float | None:
    """Return the first weight or volume in ounces that texts name."""
    for each in texts:
        if each and (match := _OUNCES.search(each)):
            return _number(match.group(1)) or None
    return None


def plain(value: object) -> str | float | bool | None:
    """Return a value of a further field as a file gives it: a text, a number or a boolean."""
    return (
        value
        if isinstance(value, bool)
        else (found if (found := _finite(value)) is not None else text(value))
    )


def _finite(value: object) -> float | None:
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
