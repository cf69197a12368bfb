"""Conditions with fractions, as Chroma must be told of them.

It cuts the fraction off a number before it compares it with a whole number of a product. So for
15.5, it is wrong about one of these only: for 15 it says what is true for a number that is equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, cast

_TRUE_FOR_EQUAL: Final = ("$eq", "$in", "$lte", "$gte")


def told(field: str, given: Any) -> Iterator[dict[str, Any]]:
    """Yield the conditions that together mean to Chroma what one condition means.

    Args:
        given: What the field must be, or an operator with its value.
    """
    condition = {field: given}
    has_operator = isinstance(given, dict)
    ((operator, value),) = cast("dict[str, Any]", given if has_operator else {"$eq": given}).items()
    values: list[Any] = value if operator in ("$in", "$nin") else [value]
    cut = sorted({math.trunc(each) for each in values if isinstance(each, float)} - {*values})
    is_true = bool(cut) and _is_true(operator, value)
    if not cut or is_true is (operator in _TRUE_FOR_EQUAL):
        yield condition
    elif is_true:
        yield {"$or": [condition, {field: {"$in": cut}}]}
    else:
        yield from (condition, {field: {"$nin": cut}})


def _is_true(operator: str, value: Any) -> bool:
    """Tell whether a condition is true for its numbers without their fractions."""
    if operator in ("$lt", "$lte"):
        return bool(value > 0)
    if operator in ("$gt", "$gte"):
        return bool(value < 0)
    return operator in ("$ne", "$nin")
