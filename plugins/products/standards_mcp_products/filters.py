"""Parse the filters of a call into conditions for Chroma, and test products against them.

Chroma wants one operator in each object and one key in each ``where``, and raises errors of many
kinds for other input. So all filters are checked here, and an error names the place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Final, TypeAlias, cast

from standards_mcp import InvalidInputError

Scalar: TypeAlias = str | float | bool
Where: TypeAlias = dict[str, Any]
_MAX_VALUES: Final = 100
_MAX_DEPTH: Final = 8
_MAX_CONDITIONS: Final = 64
_MAX_KEY_LENGTH: Final = 64
_DOCUMENT: Final = "document"
_RESERVED_PREFIXES: Final = ("$", "#", "chroma:")
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}
_TRUE_FOR_EQUAL: Final = ("$eq", "$in", "$lte", "$gte")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Parsed filters in Chroma's form.

    Attributes:
        where: Conditions on fields.
        document: Conditions on the text.
    """

    where: Where | None = None
    document: Where | None = None


def read_filters(filters: Mapping[str, Any] | None) -> Conditions:
    """Parse the argument ``filters``.

    Raises:
        InvalidInputError: A filter is invalid. The message begins with the place of the filter.
    """
    reader = _Reader()
    members = list(reader.members(filters or {}, "filters", 1, document=True))
    return Conditions(_conjunction(members), _conjunction(reader.documents))


def fulfils(conditions: Conditions, fields: Mapping[str, Any], document: str) -> bool:
    """Return True if a product fulfils the conditions, by the same rules as Chroma."""
    return _holds(
        conditions.where, lambda name, wanted: _matches(fields.get(name), *_operator(wanted))
    ) and _holds(
        conditions.document, lambda operator, part: (part in document) is (operator == "$contains")
    )


class _Reader:
    """Parse filters, with the filters inside of them.

    Attributes:
        documents: The conditions on the text that were read so far.
    """

    def __init__(self) -> None:
        self.documents = list[Where]()
        self._count = 0

    def members(
        self, filters: Mapping[str, Any], place: str, depth: int, *, document: bool
    ) -> Iterator[Where]:
        """Yield conditions that must all be true, in the order of the keys.

        Args:
            depth: The nesting depth, 1 for the outermost object.
            document: True if conditions on the text are allowed.
        """
        if depth > _MAX_DEPTH:
            raise _error(place, f"filters may be nested at most {_MAX_DEPTH} deep")
        for key, value in filters.items():
            inner = f"{place}.{_shorten(key)}"
            if key == "$and":
                groups = self._groups(value, inner, depth, document=document and depth == 1)
                yield from (member for members in groups for member in members)
            elif key == "$or":
                groups = self._groups(value, inner, depth, document=False)
                yield from [{"$or": list(map(_conjunction, groups))}] if groups[1:] else groups[0]
            elif key == _DOCUMENT:
                if not document:
                    raise _error(inner, "is allowed at the top level only, or in a $and there")
                if not isinstance(value, dict):
                    raise _error(inner, f"use {', '.join(_DOCUMENT_OPERATORS)}")
                self.documents += self._operators(cast("Where", value), inner, _DOCUMENT_OPERATORS)
            else:
                yield from self._field(key, value, place)

    def _groups(
        self, value: object, place: str, depth: int, *, document: bool
    ) -> list[list[Where]]:
        """Return the members of each filter in a list."""
        if not isinstance(value, list) or not value:
            raise _error(place, "a list of at least one filter is needed")
        groups = list[list[Where]]()
        for position, item in enumerate(cast("list[object]", value)):
            inner = f"{place}[{position}]"
            if not isinstance(item, dict) or not item:
                raise _error(inner, "an object with at least one key is needed")
            members = self.members(cast("Where", item), inner, depth + 1, document=document)
            groups.append(list(members))
        return groups

    def _field(self, key: str, value: object, place: str) -> Iterator[Where]:
        if key.startswith(_RESERVED_PREFIXES) or not key:
            raise _error(place, f"unknown key {_shorten(key)!r}; use names of fields, $and or $or")
        inner = f"{place}.{_shorten(_checked_text(key, place))}"
        if isinstance(value, dict):
            for condition in self._operators(cast("Where", value), inner, _OPERATORS):
                yield from chroma_conditions(key, condition)
        elif isinstance(value, list):
            raise _error(inner, 'use {"$in": [...]} for a list')
        else:
            self._count_condition(inner)
            yield from chroma_conditions(key, _checked_scalar(value, inner))

    def _operators(
        self, operators: Where, place: str, parsers: Mapping[str, _Parser]
    ) -> Iterator[Where]:
        """Yield each operator with its parsed value."""
        listed = ", ".join(parsers)
        if not operators:
            raise _error(place, f"an operator is needed; use {listed}")
        for operator, value in operators.items():
            if operator in _DOCUMENT_OPERATORS and operator not in parsers:
                raise _error(place, f"{operator} is allowed for {_DOCUMENT!r} only")
            if operator not in parsers:
                raise _error(place, f"unknown operator {_shorten(operator)!r}; use {listed}")
            self._count_condition(place)
            yield {operator: parsers[operator](value, f"{place}.{operator}")}

    def _count_condition(self, place: str) -> None:
        self._count += 1
        if self._count > _MAX_CONDITIONS:
            raise _error(place, f"there may be at most {_MAX_CONDITIONS} conditions")


def chroma_conditions(field: str, wanted: Any) -> Iterator[Where]:
    """Yield conditions with which Chroma gives the correct answer for one condition.

    Chroma truncates a fraction before it compares the fraction with a whole number of a product. So
    Chroma's answer for 15.5 is wrong for products with exactly 15. A further condition corrects it.

    Args:
        wanted: The field's value, or an operator with its value.
    """
    condition = {field: wanted}
    operator, value = _operator(wanted)
    values: list[Any] = value if operator in ("$in", "$nin") else [value]
    truncated = sorted({math.trunc(item) for item in values if isinstance(item, float)} - {*values})
    is_true = bool(truncated) and _matches(truncated[0], operator, value)
    if not truncated or is_true is (operator in _TRUE_FOR_EQUAL):
        yield condition
    elif is_true:
        yield {"$or": [condition, {field: {"$in": truncated}}]}
    else:
        yield from (condition, {field: {"$nin": truncated}})


def _conjunction(members: list[Where]) -> Where | None:
    return {"$and": members} if members[1:] else next(iter(members), None)


def _operator(wanted: Any) -> tuple[str, Any]:
    """Return the operator and value of a condition."""
    return (
        next(iter(cast("Where", wanted).items())) if isinstance(wanted, dict) else ("$eq", wanted)
    )


def _holds(where: Where | None, is_true: Callable[[str, Any], bool]) -> bool:
    if not where:
        return True
    ((key, wanted),) = where.items()
    if key in ("$and", "$or"):
        return (all if key == "$and" else any)(_holds(part, is_true) for part in wanted)
    return is_true(key, wanted)


def _matches(value: Any, operator: str, other: Any) -> bool:
    if compare := _COMPARISONS.get(operator):
        return _chroma_type(value) is float and compare(value, other)
    options: list[Any] = [*other] if isinstance(other, list) else [other]
    is_listed = any(_chroma_type(value) is type(option) and value == option for option in options)
    return is_listed is (operator in ("$eq", "$in"))


def _chroma_type(value: object) -> type:
    """Return the type as Chroma compares types: True differs from 1, and 1 equals 1.0."""
    return float if type(value) is int else type(value)


def _error(place: str, problem: str) -> InvalidInputError:
    return InvalidInputError(f"{place}: {problem}")


def _shorten(key: str) -> str:
    """Shorten a long key for messages."""
    return key if len(key) <= _MAX_KEY_LENGTH else f"{key[:_MAX_KEY_LENGTH]}..."


def _checked_scalar(value: object, place: str) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _checked_text(value, place)
    if isinstance(value, int | float):
        return _checked_number(value, place)
    raise _error(place, "a text, a number or a boolean is needed")


def _checked_text(value: str, place: str) -> str:
    # Chroma ends a text at a NUL, so that all products would match.
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        raise _error(place, "the text has a NUL character or half of a character (a surrogate)")
    return value


def _checked_part(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _error(place, "a text is needed")
    if not value:
        raise _error(place, "must not be empty")
    return _checked_text(value, place)


def _checked_number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _error(place, "a number is needed")
    with suppress(OverflowError):
        if math.isfinite(value):
            return float(value)
    raise _error(place, "the number must be finite")


def _checked_scalars(value: object, place: str) -> list[Scalar]:
    if not isinstance(value, list):
        raise _error(place, "a list is needed")
    values = cast("list[object]", value)
    if not values:
        raise _error(place, "must not be empty")
    if len(values) > _MAX_VALUES:
        raise _error(place, f"has {len(values)} values; at most {_MAX_VALUES} are allowed")
    parsed = [_checked_scalar(item, f"{place}[{position}]") for position, item in enumerate(values)]
    if len({*map(type, parsed)}) > 1:
        raise _error(place, "must have values of one type")
    return parsed


_Parser: TypeAlias = Callable[[object, str], object]
"""Checks the value of an operator at a place and returns it, or raises an error."""
_OPERATORS: Final[Mapping[str, _Parser]] = {
    **dict.fromkeys(("$eq", "$ne"), _checked_scalar),
    **dict.fromkeys(_COMPARISONS, _checked_number),
    **dict.fromkeys(("$in", "$nin"), _checked_scalars),
}
_DOCUMENT_OPERATORS: Final[Mapping[str, _Parser]] = dict.fromkeys(
    ("$contains", "$not_contains"), _checked_part
)
