"""Parse the filters of a call into conditions for Chroma, and test products against them.

Chroma wants one operator in each object and one key in each ``where``, and raises errors of many
kinds for other input. So all filters are checked here, and an error names the place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Final, TypeAlias, cast

from standards_mcp import InvalidInputError

Scalar: TypeAlias = str | float | bool
MOST_VALUES: Final = 100
_EXACT: Final = 2**53
"""Larger whole numbers are compared as floating-point numbers, as in the store."""


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
        raise wrong(place, "the text has a lone surrogate (half of a character)")
    if "\x00" in value:  # Chroma ends the text there, so all products would match
        raise wrong(place, "the text has a NUL character, which no product has")
    return value


def some_text(value: object, place: str) -> str:
    """Return a text that is not empty."""
    if not (parsed := text(value, place)):
        raise wrong(place, "must not be empty")
    return parsed


def number(value: object, place: str) -> float:
    """Return a number that is finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(place, "a number is needed")
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if not math.isfinite(as_float):
        raise wrong(place, "the number must be finite")
    return value if abs(as_float) <= _EXACT else as_float


def scalars(value: object, place: str) -> list[Scalar]:
    """Return a list of values of one type."""
    if not isinstance(value, list):
        raise wrong(place, "a list is needed")
    values = cast("list[object]", value)
    if not values:
        raise wrong(place, "must not be empty")
    if len(values) > MOST_VALUES:
        raise wrong(place, f"has {len(values)} values; it may have {MOST_VALUES}")
    parsed = [scalar(item, f"{place}[{position}]") for position, item in enumerate(values)]
    if len({_kind(item) for item in parsed}) > 1:
        raise wrong(place, "must have values of one type")
    # For Chroma, 1 and 1.5 are two types.
    return [float(item) for item in parsed] if len({*map(type, parsed)}) > 1 else parsed


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
"""Parsers for the values of field operators."""
DOCUMENT_OPERATORS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "$contains": some_text,
    "$not_contains": some_text,
}


def _kind(value: Scalar) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


_TRUE_FOR_EQUAL: Final = ("$eq", "$in", "$lte", "$gte")


def chroma_conditions(field: str, wanted: Any) -> Iterator[dict[str, Any]]:
    """Yield conditions that give Chroma the meaning of one condition.

    Chroma truncates a fraction before it compares it with a whole number of a product. So its
    answer for 15.5 is wrong for products with exactly 15, and a further condition corrects it.

    Args:
        given: The field's value, or an operator with its value.
    """
    condition = {field: wanted}
    has_operator = isinstance(wanted, dict)
    ((operator, value),) = cast(
        "dict[str, Any]", wanted if has_operator else {"$eq": wanted}
    ).items()
    values: list[Any] = value if operator in ("$in", "$nin") else [value]
    cut = sorted({math.trunc(number) for number in values if isinstance(number, float)} - {*values})
    is_true = bool(cut) and _is_true(operator, value)
    if not cut or is_true is (operator in _TRUE_FOR_EQUAL):
        yield condition
    elif is_true:
        yield {"$or": [condition, {field: {"$in": cut}}]}
    else:
        yield from (condition, {field: {"$nin": cut}})


def _is_true(operator: str, value: Any) -> bool:
    """Return True if a condition holds for the truncated number."""
    if operator in ("$lt", "$lte"):
        return bool(value > 0)
    if operator in ("$gt", "$gte"):
        return bool(value < 0)
    return operator in ("$ne", "$nin")


Where: TypeAlias = dict[str, Any]
DEEPEST: Final = 8
MOST_CONDITIONS: Final = 64
DOCUMENT: Final = "document"
_LONGEST_KEY: Final = 64
_RESERVED: Final = ("$", "#", "chroma:")


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
        InvalidInputError: A filter is invalid; the message begins with its place.
    """
    if not filters:
        return Conditions()
    reader = _Reader()
    members = list(reader.members(filters, "filters", 1, document=True))
    return Conditions(_all(members), _all(reader.documents))


class _Reader:
    """Reads one object of filters.

    Attributes:
        documents: The conditions about the text.
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
        if depth > DEEPEST:
            raise wrong(place, f"filters may be nested {DEEPEST} deep")
        for key, value in filters.items():
            inner = f"{place}.{_short(key)}"
            if key in ("$and", "$or"):
                for_all = key == "$and"
                may_have = document and for_all and depth == 1
                yield from self._group(value, inner, depth, document=may_have, for_all=for_all)
            elif key == DOCUMENT:
                self._document(value, inner, is_allowed=document)
            else:
                yield from self._field(key, value, place)

    def _group(
        self, value: object, place: str, depth: int, *, document: bool, for_all: bool
    ) -> Iterator[Where]:
        if not isinstance(value, list) or not value:
            raise wrong(place, "a list of at least one filter is needed")
        filters_list = cast("list[object]", value)
        groups = list[list[Where]]()
        for position, item in enumerate(filters_list):
            inner = f"{place}[{position}]"
            if not isinstance(item, dict) or not item:
                raise wrong(inner, "an object with at least one key is needed")
            filters = cast("dict[str, Any]", item)
            groups.append(list(self.members(filters, inner, depth + 1, document=document)))
        if for_all or len(groups) == 1:
            yield from (item for members in groups for item in members)
        else:
            yield {"$or": [_all(members) for members in groups]}

    def _field(self, key: str, value: object, place: str) -> Iterator[Where]:
        if key.startswith(_RESERVED) or not key:
            raise wrong(place, f"unknown key {_short(key)!r}; use names of fields, $and or $or")
        inner = f"{place}.{_short(text(key, place))}"
        if isinstance(value, dict):
            for operator, operand in self._operators(cast("Where", value), inner, OPERATORS):
                yield from chroma_conditions(key, {operator: operand})
        elif isinstance(value, list):
            raise wrong(inner, 'a list is given by {"$in": [...]}')
        else:
            self._add(inner)
            yield from chroma_conditions(key, scalar(value, inner))

    def _document(self, value: object, place: str, *, is_allowed: bool) -> None:
        if not is_allowed:
            raise wrong(place, "is allowed at the top level only, or in a $and there")
        if not isinstance(value, dict):
            raise wrong(place, f"use {_listed(DOCUMENT_OPERATORS)}")
        for operator, operand in self._operators(cast("Where", value), place, DOCUMENT_OPERATORS):
            self.documents.append({operator: operand})

    def _operators(
        self, operators: Where, place: str, parsers: Mapping[str, Any]
    ) -> Iterator[tuple[str, object]]:
        if not operators:
            raise wrong(place, f"an operator is needed; use {_listed(parsers)}")
        for operator, operand in operators.items():
            if operator in DOCUMENT_OPERATORS and operator not in parsers:
                raise wrong(place, f"{operator} is for the name {DOCUMENT!r} only")
            if operator not in parsers:
                problem = f"unknown operator {_short(operator)!r}; use {_listed(parsers)}"
                raise wrong(place, problem)
            self._add(place)
            yield operator, parsers[operator](operand, f"{place}.{operator}")

    def _add(self, place: str) -> None:
        self._count += 1
        if self._count > MOST_CONDITIONS:
            raise wrong(place, f"there may be {MOST_CONDITIONS} conditions")


def _all(members: list[Where]) -> Where | None:
    if not members:
        return None
    return members[0] if len(members) == 1 else {"$and": members}


def _short(key: str) -> str:
    """Shorten a long key for messages."""
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."


def _listed(operators: Mapping[str, Any]) -> str:
    return ", ".join(operators)


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}
_NEGATIONS: Final = {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}


def fulfils(conditions: Conditions, fields: Mapping[str, Any], document: str) -> bool:
    """Return True if a product fulfils the conditions, by the same rules as Chroma."""
    return _holds(conditions.where, fields) and _text_holds(conditions.document, document)


def _holds(where: Where | None, fields: Mapping[str, Any]) -> bool:
    for key, wanted in (where or {}).items():
        if key == "$and":
            return all(_holds(part, fields) for part in wanted)
        if key == "$or":
            return any(_holds(part, fields) for part in wanted)
        is_plain = not isinstance(wanted, dict)
        ((name, value),) = cast("Where", {"$eq": wanted} if is_plain else wanted).items()
        return _compares(name, fields.get(key), value)
    return True


def _compares(name: str, value: Any, other: Any) -> bool:
    if name in _NEGATIONS:
        return not _compares(_NEGATIONS[name], value, other)
    if name == "$eq":
        return _chroma_type(value) is _chroma_type(other) and value == other
    if name == "$in":
        return any(_compares("$eq", value, option) for option in other)
    return _chroma_type(value) is float and _COMPARISONS[name](value, other)


def _text_holds(where: Where | None, document: str) -> bool:
    for name, wanted in (where or {}).items():
        if name == "$and":
            return all(_text_holds(part, document) for part in wanted)
        return (wanted in document) is (name == "$contains")
    return True


def _chroma_type(value: object) -> type:
    """Return the type as in Chroma: True differs from 1, and 1 equals 1.0."""
    return float if type(value) is int else type(value)
