"""Make a filter of a range of grades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp_catalog.vocabulary.grades import (
    SCHOOL_GRADES,
    UnknownGradeError,
    grade_order,
    parse_grades,
)

_WITHIN: Final = re.compile(
    r"(?P<grades>.+?)[ ,;(]{0,3}(?:within|±|\+ ?/? ?-|plus or minus) ?[=:]? ?(?P<count>\d+)"
    r" ?(?:grades?|years?|levels?)? ?\)?",
    re.IGNORECASE,
)


def grade_filter(text: str) -> FilterExpression | None:
    """Return the filter for ``3-5``, or for ``4 within 1``: one grade more on either side.

    Raises:
        InvalidInputError: The grade does not exist; the message names the existing ones.
    """
    text = " ".join(text.split())
    if not text:
        return None
    match = _WITHIN.fullmatch(text)
    try:
        levels = parse_grades(match["grades"] if match else text)
    except UnknownGradeError as exc:
        raise InvalidInputError(f"{exc} Write '3-5', or '4 within 1' for 3 to 5.") from None
    if match:
        levels = _widened(levels, int(match["count"][:3]))
    return {"education_levels": {"$in": list(levels)}}


def _widened(levels: Iterable[str], count: int) -> tuple[str, ...]:
    widened = {near for level in levels for near in _around(level, count)}
    return tuple(sorted(widened, key=grade_order))


def _around(level: str, count: int) -> Iterator[str]:
    if level not in SCHOOL_GRADES:
        yield level  # levels beyond school have no neighbours
        return
    place = SCHOOL_GRADES.index(level)
    yield from SCHOOL_GRADES[max(0, place - count) : place + count + 1]
