"""A metadata filter, compiled once for both halves of an index.

Each condition becomes a mask of rows, for the vectors, and a query of filter tokens, for the
words. Both are exact, so that a row which the filter excludes is never scored.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tantivy import Occur, Query

from standards_mcp.filters import And, Condition, FilterExpression, Node
from standards_mcp_catalog.base import parse_search_filter

from .columns import Column, Columns, Mask
from .lexical import LexicalIndex


class Selection(NamedTuple):
    """The rows that a filter lets through; both None when it lets all of them through."""

    mask: Mask | None = None
    query: Query | None = None


class _Part(NamedTuple):
    mask: Mask
    query: Query


def select(
    expression: FilterExpression | None, columns: Columns, lexical: LexicalIndex, rows: int
) -> Selection:
    """Compile a filter.

    Args:
        rows: The number of rows of the index.

    Raises:
        FilterError: The filter is wrong, or asks for a text that is searched, not filtered.
    """
    node = parse_search_filter(expression)
    if node is None:
        return Selection()
    return Selection(*_Compiler(columns, lexical, rows).compile(node))


class _Compiler:
    def __init__(self, columns: Columns, lexical: LexicalIndex, rows: int) -> None:
        self._columns = columns
        self._lexical = lexical
        self._rows = rows

    def compile(self, node: Node) -> _Part:
        if isinstance(node, Condition):
            return self._condition(node)
        parts = [self.compile(operand) for operand in node.operands]
        combine, occur = (
            (np.logical_and, Occur.Must) if isinstance(node, And) else (np.logical_or, Occur.Should)
        )
        mask = reduce(combine, (part.mask for part in parts))
        return _Part(mask, Query.boolean_query([(occur, part.query) for part in parts]))

    def _condition(self, condition: Condition) -> _Part:
        column = self._columns.get(condition.field)
        # No record has the field: all match when it must be absent, otherwise none does.
        if column is None:
            nothing = _Part(np.zeros(self._rows, dtype=np.bool_), Query.empty_query())
            return self._everything() if condition.accepts_missing else nothing
        if condition.accepts_missing:
            return self._without(self._everything(), self._present(column))
        accepted = np.fromiter(map(condition.accepts, column.values), np.bool_, len(column.values))
        # A row with one value that is not accepted fails, whatever else it has. So the rows that
        # have such a value are taken away from those that have the field at all.
        if condition.needs_every:
            return self._without(self._present(column), self._with_codes(column, ~accepted))
        return self._with_codes(column, accepted)

    def _with_codes(self, column: Column, wanted: npt.NDArray[np.bool_]) -> _Part:
        mask = np.zeros(self._rows, dtype=np.bool_)
        column.mark(mask, wanted)
        tokens = [column.token(code) for code in np.flatnonzero(wanted).tolist()]
        return _Part(mask, self._lexical.tokens_query(tokens))

    def _present(self, column: Column) -> _Part:
        mask = np.zeros(self._rows, dtype=np.bool_)
        mask[column.rows] = True
        return _Part(mask, self._lexical.tokens_query([column.presence]))

    def _everything(self) -> _Part:
        return _Part(np.ones(self._rows, dtype=np.bool_), Query.all_query())

    @staticmethod
    def _without(part: _Part, excluded: _Part) -> _Part:
        clauses = [(Occur.Must, part.query), (Occur.MustNot, excluded.query)]
        return _Part(part.mask & ~excluded.mask, Query.boolean_query(clauses))
