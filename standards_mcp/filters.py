"""The metadata filter language that plugins share, which is the language of Pinecone.

https://docs.pinecone.io/guides/search/filter-by-metadata describes the operators. An expression
is JSON data::

    {"subject": "Mathematics", "education_levels": {"$in": ["03", "04"]}, "depth": {"$gte": 2}}
    {"$or": [{"is_leaf": True}, {"$and": [...]}]}

Several fields, and several operators on one field, must all match. A condition depends only on the
values of its field in a record: the elements of a list, or the scalar as the only value. A field
that is absent, null or an empty list has no values.

========================================  ================================================
operator                                  matches a record when
========================================  ================================================
``$eq $in $gt $gte $lt $lte``             the field has a value that the condition accepts
``$ne $nin``                              the field has values, all of which it accepts
``$exists``: true                         the field has a value
``$exists``: false                        the field has no value
========================================  ================================================

A store may therefore call `Condition.accepts` once for each distinct value of a field, and combine
the results like `Condition.holds`. Texts equal texts, numbers equal numbers (1 is 1.0),
true and false equal only themselves.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import ge, gt, le, lt
from typing import Any, Final, TypeAlias, TypeGuard, cast, overload

from .errors import FilterError

FilterExpression: TypeAlias = Mapping[str, Any]
"""A filter as JSON data. The docstring of the module describes it."""

Scalar: TypeAlias = str | int | float | bool
"""A value that a filter compares with."""

Operand: TypeAlias = Scalar | tuple[Scalar, ...]
"""The value after an operator."""

FIELD_OPERATORS: Final = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists")
LOGIC_OPERATORS: Final = ("$and", "$or")
MAX_DEPTH: Final = 32
"""The maximum depth of nested ``$and`` and ``$or``."""
MAX_SIZE: Final = 10_000
"""The maximum number of operands in one filter, including the elements of lists."""

_ORDERINGS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le,
}  # fmt: skip
_NEGATIONS: Final = ("$ne", "$nin")
_LONGEST_QUOTE: Final = 40


@dataclass(frozen=True)
class Condition:
    """One operator on one field.

    Attributes:
        operator: One of `FIELD_OPERATORS`.
        operand: A bool for ``$exists``, a number for the orderings, a tuple for ``$in`` and
            ``$nin``, any scalar for ``$eq`` and ``$ne``.
    """

    field: str
    operator: str
    operand: Operand

    @cached_property
    def _listed(self) -> frozenset[tuple[bool, Scalar]]:
        listed = self.operand if isinstance(self.operand, tuple) else (self.operand,)
        return frozenset(map(_identity, listed))

    @property
    def accepts_missing(self) -> bool:
        """True if a record without values in the field matches."""
        return self.operator == "$exists" and self.operand is False

    @property
    def needs_every(self) -> bool:
        """True if all values of a field must be accepted, instead of any."""
        return self.operator in _NEGATIONS

    def accepts(self, value: object) -> bool:
        """Return True if one value, or one element of a list, satisfies the operator."""
        if self.operator == "$exists":
            return self.operand is True
        if compare := _ORDERINGS.get(self.operator):
            return _is_number(value) and _is_number(self.operand) and compare(value, self.operand)
        return (_is_scalar(value) and _identity(value) in self._listed) != self.needs_every

    def holds(self, values: Collection[object]) -> bool:
        """Return True if a record with these values in the field matches. See `values_of`."""
        if not values:
            return self.accepts_missing
        return (all if self.needs_every else any)(map(self.accepts, values))


@dataclass(frozen=True, slots=True)
class And:
    """Matches if every operand matches."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Matches if any operand matches."""

    operands: tuple[Node, ...]


Node: TypeAlias = Condition | And | Or
"""A parsed filter."""


def parse_filter(expression: object) -> Node | None:
    """Return the filter that *expression* describes, or None for an empty one or None.

    A parsed filter is returned as it is.

    Raises:
        FilterError: The expression is not a filter, or exceeds `MAX_DEPTH` or `MAX_SIZE`.
    """
    if isinstance(expression, Condition | And | Or):
        return expression
    if expression is None or (_is_mapping(expression) and not expression):
        return None
    return _Parser().node(expression, depth=1)


def matches(node: Node | None, record: Mapping[str, Any]) -> bool:
    """Return True if *record* (JSON data, see `StandardRecord.to_dict`) passes the filter."""
    if node is None:
        return True
    if isinstance(node, Condition):
        return node.holds(values_of(record, node.field))
    verdicts = (matches(operand, record) for operand in node.operands)
    return all(verdicts) if isinstance(node, And) else any(verdicts)


def values_of(record: Mapping[str, Any], name: str) -> tuple[object, ...]:
    """Return the values of a field: none, the only one, or the elements of a list."""
    value = record.get(name)
    elements = value if _is_list(value) else (value,)
    return tuple(element for element in elements if element is not None)


@overload
def combine(*filters: FilterExpression | None) -> FilterExpression | None: ...
@overload
def combine(*filters: FilterExpression | Node | None) -> FilterExpression | Node | None: ...
def combine(*filters: FilterExpression | Node | None) -> FilterExpression | Node | None:
    """Return a filter that matches if all of *filters* match, or None if all are empty.

    The result is parsed if one of several filters is parsed.
    """
    parts = [part for part in filters if part]
    if len(parts) <= 1:
        return next(iter(parts), None)
    if all(map(_is_mapping, parts)):
        return {"$and": parts}
    return And(tuple(node for part in parts if (node := parse_filter(part))))


def fields(node: Node | None) -> frozenset[str]:
    """Return the names of the fields that a filter reads."""
    if isinstance(node, Condition):
        return frozenset({node.field})
    operands = () if node is None else node.operands
    return frozenset(name for operand in operands for name in fields(operand))


class _Parser:
    """Parses one expression, and counts its operands to enforce `MAX_SIZE`."""

    def __init__(self) -> None:
        self._size = 0

    def node(self, expression: object, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise FilterError(f"The filter is nested more than {MAX_DEPTH} levels deep.")
        if not _is_mapping(expression) or not expression:
            raise FilterError(
                f"{_described(expression)} is not a filter; write "
                '{"field": value} or {"field": {"$in": [value, value]}}.'
            )
        nodes = [node for entry in expression.items() for node in self._entry(*entry, depth)]
        return nodes[0] if len(nodes) == 1 else And(tuple(nodes))

    def _entry(self, key: object, value: object, depth: int) -> Iterator[Node]:
        if not isinstance(key, str) or not key:
            raise FilterError(
                f"The name of a field must be a text that is not empty, not {_described(key)}."
            )
        if key in LOGIC_OPERATORS:
            yield self._logic(key, value, depth)
        elif key in FIELD_OPERATORS:
            raise FilterError(f'{key} belongs under a field: {{"field": {{"{key}": value}}}}.')
        elif key.startswith("$"):
            raise _unknown_operator(key, LOGIC_OPERATORS)
        elif not _is_mapping(value):
            yield self._condition(key, "$eq", value)
        elif value:
            yield from (self._condition(key, *entry) for entry in value.items())
        else:
            raise FilterError(f"{_described(key)} needs an operator: {', '.join(FIELD_OPERATORS)}.")

    def _logic(self, operator: str, expressions: object, depth: int) -> Node:
        if not _is_list(expressions) or not expressions:
            raise FilterError(
                f"{operator} takes a list of filters that is not empty, "
                f"not {_described(expressions)}."
            )
        nodes = tuple(self.node(expression, depth + 1) for expression in expressions)
        return nodes[0] if len(nodes) == 1 else And(nodes) if operator == "$and" else Or(nodes)

    def _condition(self, name: str, operator: object, operand: object) -> Condition:
        if not isinstance(operator, str) or operator not in FIELD_OPERATORS:
            raise _unknown_operator(operator, FIELD_OPERATORS, f"{_described(name)}: ")
        self._size += len(operand) if _is_list(operand) else 1
        if self._size > MAX_SIZE:
            raise FilterError(f"The filter has more than {MAX_SIZE:,} values.")
        value = tuple(operand) if _is_list(operand) else operand
        expected, fits = _OPERAND_FORMS[operator]
        if fits(value):
            return Condition(name, operator, cast("Operand", value))
        is_list = _is_list(value) and expected is _SCALAR_FORM
        hint = " Use $in or $nin for a list." if is_list else ""
        raise FilterError(
            f"{_described(name)}: {operator} takes {expected}, not {_described(operand)}.{hint}"
        )


def _identity(value: Scalar) -> tuple[bool, Scalar]:
    return isinstance(value, bool), value  # for Python, True == 1


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_scalar(value: object) -> TypeGuard[Scalar]:
    return isinstance(value, str | bool) or _is_number(value)


def _is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


_SCALAR_FORM: Final = "a text, a number, true or false"
_OPERAND_FORMS: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    **dict.fromkeys(("$eq", "$ne"), (_SCALAR_FORM, _is_scalar)),
    **dict.fromkeys(_ORDERINGS, ("a number", _is_number)),
    **dict.fromkeys(
        ("$in", "$nin"),
        (
            "a list, not empty, of texts, numbers, true or false",
            lambda value: _is_list(value) and bool(value) and all(map(_is_scalar, value)),
        ),
    ),
    "$exists": ("true or false", lambda value: isinstance(value, bool)),
}
"""The form of each operator's operand, in words and as a test."""


def _described(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_LONGEST_QUOTE])
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if _is_list(value) or _is_mapping(value):
        kind = "list" if _is_list(value) else "object"
        return f"this {kind}" if value else f"an empty {kind}"
    return f"a value of type {type(value).__name__}"


def _unknown_operator(operator: object, operators: Sequence[str], where: str = "") -> FilterError:
    typed = operator[:_LONGEST_QUOTE] if isinstance(operator, str) else ""
    close = difflib.get_close_matches(typed, operators, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]}?" if close else ""
    return FilterError(
        f"{where}{_described(operator)} is not an operator; use {', '.join(operators)}.{hint}"
    )
