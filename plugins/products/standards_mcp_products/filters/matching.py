"""Tells whether a product fulfils conditions, as Chroma would tell."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from .reading import Conditions, Where

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_NEGATIONS: Final = {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}


def fulfils(conditions: Conditions, fields: Mapping[str, Any], document: str) -> bool:
    """Tell whether a product with these fields and this text fulfils the conditions."""
    return _is_true(conditions.where, fields) and _says(conditions.document, document)


def _is_true(where: Where | None, fields: Mapping[str, Any]) -> bool:
    for key, given in (where or {}).items():
        if key == "$and":
            return all(_is_true(each, fields) for each in given)
        if key == "$or":
            return any(_is_true(each, fields) for each in given)
        is_plain = not isinstance(given, dict)
        ((name, value),) = cast("Where", {"$eq": given} if is_plain else given).items()
        return _compares(name, fields.get(key), value)
    return True


def _compares(name: str, value: Any, other: Any) -> bool:
    if name in _NEGATIONS:
        return not _compares(_NEGATIONS[name], value, other)
    if name == "$eq":
        return _kind(value) is _kind(other) and value == other
    if name == "$in":
        return any(_compares("$eq", value, each) for each in other)
    return _kind(value) is float and _COMPARISONS[name](value, other)


def _says(where: Where | None, document: str) -> bool:
    for name, given in (where or {}).items():
        if name == "$and":
            return all(_says(each, document) for each in given)
        return (given in document) is (name == "$contains")
    return True


def _kind(value: object) -> type:
    """Return the type as Chroma sees it: True is not 1, and 1 is 1.0."""
    return float if type(value) is int else type(value)
