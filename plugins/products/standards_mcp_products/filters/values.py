"""What each operator compares with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from standards_mcp import InvalidInputError

Scalar: TypeAlias = str | float | bool
MOST_VALUES: Final = 100
_EXACT: Final = 2**53
"""Whole numbers above are compared as the store keeps them, as floating-point numbers."""


def wrong(place: str, problem: str) -> InvalidInputError:
    """Return the error of a filter, with its place."""
    return InvalidInputError(f"{place}: {problem}")


def scalar(value: object, place: str) -> Scalar:
    """Return a text, a number or a boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value, place)
    if isinstance(value, int | float):
        return number(value, place)
    raise wrong(place, "a text, a number or a boolean is needed")


def text(value: object, place: str) -> str:
    """Return a text that can be stored."""
    if not isinstance(value, str):
        raise wrong(place, "a text is needed")
    if any("\ud800" <= each <= "\udfff" for each in value):
        raise wrong(place, "the text has half of a character")
    if "\x00" in value:  # where Chroma ends the text, so that all products would match
        raise wrong(place, "the text has a NUL character, which no product has")
    return value


def some_text(value: object, place: str) -> str:
    """Return a text that is not empty."""
    if not (found := text(value, place)):
        raise wrong(place, "must not be empty")
    return found


def number(value: object, place: str) -> float:
    """Return a number that is finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(place, "a number is needed")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise wrong(place, "the number must be finite")
    return value if abs(found) <= _EXACT else found


def scalars(value: object, place: str) -> list[Scalar]:
    """Return a list of values of one type."""
    if not isinstance(value, list):
        raise wrong(place, "a list is needed")
    given = cast("list[object]", value)
    if not given:
        raise wrong(place, "must not be empty")
    if len(given) > MOST_VALUES:
        raise wrong(place, f"has {len(given)} values; it may have {MOST_VALUES}")
    found = [scalar(each, f"{place}[{position}]") for position, each in enumerate(given)]
    if len({_kind(each) for each in found}) > 1:
        raise wrong(place, "must have values of one type")
    # For Chroma, 1 and 1.5 are two types.
    return [float(each) for each in found] if len({*map(type, found)}) > 1 else found


OPERATORS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "$eq": scalar,
    "$ne": scalar,
    "$gt": number,
    "$gte": number,
    "$lt": number,
    "$lte": number,
    "$in": scalars,
    "$nin": scalars,
}
"""What reads the value of each operator on a field."""
DOCUMENT_OPERATORS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "$contains": some_text,
    "$not_contains": some_text,
}


def _kind(value: Scalar) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
