"""From the filter language of every store to what Pinecone accepts.

Pinecone takes ``$and`` and ``$or`` at the top of a filter only, so a nested filter is rewritten
as an ``$or`` of objects whose entries must all match:
https://docs.pinecone.io/guides/search/filter-by-metadata.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, cast

from standards_mcp.errors import FilterError
from standards_mcp.filters import And, Condition, Node, Operand, Or, Scalar
from standards_mcp_catalog.texts import without_surrogates

MAX_ALTERNATIVES: Final = 100
"""The greatest number of alternatives that a nested filter may come to."""

_POSITIVE: Final = ("$eq", "$in")
_Conjunction: TypeAlias = tuple[Condition, ...]


def pinecone_filter(node: Node | None) -> dict[str, Any] | None:
    """Return the filter as Pinecone takes it, None for None.

    Raises:
        FilterError: It cannot be written without nesting, or only at excessive length.
    """
    if node is None:
        return None
    node = _simplified(node)
    if isinstance(node, Condition):
        return _condition(node)
    if all(isinstance(operand, Condition) for operand in node.operands):
        conditions = [_condition(each) for each in node.operands if isinstance(each, Condition)]
        return {"$and" if isinstance(node, And) else "$or": conditions}
    alternatives = list(itertools.islice(_alternatives(node), MAX_ALTERNATIVES + 1))
    if len(alternatives) > MAX_ALTERNATIVES:
        raise FilterError(
            f"The filter comes to more than {MAX_ALTERNATIVES} alternatives, which is too much "
            "for Pinecone. Use $in in place of $or, or ask for fewer things at once."
        )
    return {"$or": [_merged(alternative) for alternative in alternatives]}


def _simplified(node: Node) -> Node:
    """Return the same filter, flat where it can be: ``$or`` of one field's values is ``$in``."""
    if isinstance(node, Condition):
        return node
    kind = type(node)
    flat: list[Node] = []
    for operand in map(_simplified, node.operands):
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    if isinstance(node, Or):
        flat = list(_joined(flat))
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _joined(nodes: Sequence[Node]) -> Iterator[Node]:
    listed: dict[str, list[Condition]] = {}
    others: list[Node] = []
    for node in nodes:
        if isinstance(node, Condition) and node.operator in _POSITIVE:
            listed.setdefault(node.field, []).append(node)
        else:
            others.append(node)
    for field, same in listed.items():
        values = _unique(value for each in same for value in _listed(each.operand))
        yield same[0] if len(same) == 1 else Condition(field, "$in", values)
    yield from others


def _unique(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


def _listed(operand: Operand) -> tuple[Any, ...]:
    return operand if isinstance(operand, tuple) else (operand,)


def _alternatives(node: Node) -> Iterator[_Conjunction]:
    """Yield conjunctions one of which must hold: the filter's disjunctive normal form."""
    if isinstance(node, Condition):
        yield (node,)
    elif isinstance(node, Or):
        for operand in node.operands:
            yield from _alternatives(operand)
    else:
        for parts in itertools.product(*map(_alternatives, node.operands)):
            yield tuple(itertools.chain.from_iterable(parts))


def _merged(conjunction: _Conjunction) -> dict[str, Any]:
    """Return one object for conditions that must all hold."""
    merged: dict[str, dict[str, Any]] = {}
    for condition in dict.fromkeys(conjunction):
        ((field, operators_of_one),) = _condition(condition).items()
        ((operator, operand),) = operators_of_one.items()
        operators = merged.setdefault(field, {})
        if operator in operators:
            operator, operand = _both(condition, operators.pop(operator))
        operators[operator] = operand
    return merged


def _both(condition: Condition, other: Any) -> tuple[str, Any]:
    """Return one condition for two on the same field with the same operator, where there is one."""
    mine = condition.operand
    if condition.operator in ("$ne", "$nin"):
        others = cast("list[object]", other) if isinstance(other, list) else [other]
        return "$nin", list(_unique([*others, *_listed(mine)]))
    if condition.operator in ("$gt", "$gte") and isinstance(mine, int | float):
        return condition.operator, max(mine, other)
    if condition.operator in ("$lt", "$lte") and isinstance(mine, int | float):
        return condition.operator, min(mine, other)
    raise FilterError(
        f"Pinecone cannot combine two {condition.operator} conditions on {condition.field!r} "
        "inside $or. Write them side by side at the top, or as one."
    )


def _condition(condition: Condition) -> dict[str, dict[str, Any]]:
    operand = condition.operand
    plain = list(map(_sendable, operand)) if isinstance(operand, tuple) else _sendable(operand)
    return {without_surrogates(condition.field): {condition.operator: plain}}


def _sendable(value: Scalar) -> Scalar:
    return without_surrogates(value) if isinstance(value, str) else value
