"""The metadata half of the index: fields as columns of codes, and filters compiled on them.

A condition is evaluated once for each distinct value of its field. The accepted values become a
mask of rows for the vectors and a query of filter tokens for the words. Both are exact, so a row
that the filter excludes is never scored.
"""

from __future__ import annotations

import json
import threading
import weakref
from array import array
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from tantivy import Occur, Query

from standards_mcp.filters import And, Condition, Node, values_of
from standards_mcp_catalog.base import SEARCHED_FIELDS, Filter, parse_search_filter

from .lexical import LexicalIndex
from .manifest import reading

Mask: TypeAlias = npt.NDArray[np.bool_]


class Column(NamedTuple):
    """One field: the rows ``rows[starts[c]:starts[c + 1]]`` have ``values[c]``; c is a code.

    Attributes:
        number: The field's number in this index.
    """

    number: int
    values: list[Any]
    rows: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    def counts(self) -> dict[str, int]:
        """Return the values that are texts, each with its number of rows."""
        pairs = zip(self.values, np.diff(self.starts).tolist(), strict=True)
        return {value: rows for value, rows in pairs if isinstance(value, str)}

    def mark(self, mask: Mask, wanted: Mask) -> None:
        """Set the rows of *mask* that have one of the codes for which *wanted* is true."""
        edges = np.flatnonzero(np.diff(wanted, prepend=False, append=False))
        for first, end in edges.reshape(-1, 2).tolist():
            mask[self.rows[self.starts[first] : self.starts[end]]] = True


class _Field:
    """Collects the values of one field, and the rows that have them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: list[Any] = []
        self._presence = _token(number)
        self._codes: dict[Any, int] = {}
        self._rows = array("i")
        self._row_codes = array("i")

    def add(self, row: int, elements: Sequence[Any]) -> list[str]:
        codes = [self._code(element) for element in elements]
        self._rows.extend([row] * len(codes))
        self._row_codes.extend(codes)
        return [self._presence, *(_token(self.number, code) for code in codes)]

    def by_code(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the rows in the order of their codes, and where each code starts."""
        codes = np.frombuffer(self._row_codes, dtype=np.int32)
        rows = np.frombuffer(self._rows, dtype=np.int32)[np.argsort(codes, kind="stable")]
        counts = np.bincount(codes, minlength=len(self.values))
        return rows, np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))

    def _code(self, value: Any) -> int:
        # 1, 1.0 and True are equal for Python and differ in JSON. Most values are texts.
        key = value
        if not isinstance(value, str):
            kind = type(value).__name__
            key = kind, json.dumps(value, sort_keys=True) if kind in ("list", "dict") else value
        code = self._codes.setdefault(key, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code


class ColumnsWriter:
    """Collects the fields of records, row by row, and writes them as one file."""

    def __init__(self) -> None:
        self._fields: dict[str, _Field] = {}

    def add(self, row: int, data: Mapping[str, Any]) -> list[str]:
        """Add one record (JSON data) and return its filter tokens."""
        tokens: list[str] = []
        for name in data:
            values = () if name in SEARCHED_FIELDS else values_of(data, name)
            if values:
                if name not in self._fields:
                    self._fields[name] = _Field(len(self._fields))
                tokens += self._fields[name].add(row, values)
        return tokens

    def save(self, path: Path) -> None:
        """Write the columns to *path* (NumPy's npz format)."""
        arrays: dict[str, npt.NDArray[Any]] = {"names": _packed(list(self._fields))}
        for field in self._fields.values():
            arrays[f"values_{field.number}"] = _packed(field.values)
            rows, starts = field.by_code()
            arrays[f"rows_{field.number}"], arrays[f"starts_{field.number}"] = rows, starts
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)


class Columns:
    """The columns of an index; each is read at its first use.

    Raises:
        CatalogUnavailableError: The file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._loaded: dict[str, Column] = {}
        with reading(path):
            self._file = np.load(path, allow_pickle=False)
            weakref.finalize(self, self._file.close)
            self._names: list[str] = _unpacked(self._file["names"])

    @property
    def names(self) -> Sequence[str]:
        """The fields that some record has."""
        return self._names

    def get(self, name: str) -> Column | None:
        """Return the column of a field, or None when no record has it."""
        with self._lock:
            if name not in self._loaded:
                if name not in self._names:
                    return None
                with reading(self._path):
                    self._loaded[name] = self._read(self._names.index(name))
            return self._loaded[name]

    def _read(self, number: int) -> Column:
        return Column(
            number=number,
            values=_unpacked(self._file[f"values_{number}"]),
            rows=self._file[f"rows_{number}"],
            starts=self._file[f"starts_{number}"],
        )


def _token(number: int, code: int | str = "*") -> str:
    """Return the filter token of the rows that have this code of a field, or the field at all."""
    return f"{number}:{code}"


def _packed(values: Sequence[Any]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)


def _unpacked(array_: npt.NDArray[np.uint8]) -> Any:
    return json.loads(array_.tobytes())


class Selection(NamedTuple):
    """The rows that pass a filter, as a mask and as a query; both are None if all rows pass."""

    mask: Mask | None = None
    query: Query | None = None


class _Part(NamedTuple):
    """The rows that pass a part of a filter."""

    mask: Mask
    query: Query


def select(
    expression: Filter | None, columns: Columns, lexical: LexicalIndex, rows: int
) -> Selection:
    """Compile a filter.

    Args:
        rows: The number of rows of the index.

    Raises:
        FilterError: The filter is invalid, or has a condition on one of the `SEARCHED_FIELDS`.
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
            return self._all_rows() if condition.accepts_missing else nothing
        if condition.accepts_missing:
            return self._without(self._all_rows(), self._with_field(column))
        accepted = np.fromiter(map(condition.accepts, column.values), np.bool_, len(column.values))
        # A row with one value that is not accepted fails, whatever its other values. So the rows
        # with such a value are subtracted from the rows with the field.
        if condition.needs_every:
            return self._without(self._with_field(column), self._with_codes(column, ~accepted))
        return self._with_codes(column, accepted)

    def _with_codes(self, column: Column, wanted: npt.NDArray[np.bool_]) -> _Part:
        mask = np.zeros(self._rows, dtype=np.bool_)
        column.mark(mask, wanted)
        tokens = [_token(column.number, code) for code in np.flatnonzero(wanted).tolist()]
        return _Part(mask, self._lexical.tokens_query(tokens))

    def _with_field(self, column: Column) -> _Part:
        mask = np.zeros(self._rows, dtype=np.bool_)
        mask[column.rows] = True
        return _Part(mask, self._lexical.tokens_query([_token(column.number)]))

    def _all_rows(self) -> _Part:
        return _Part(np.ones(self._rows, dtype=np.bool_), Query.all_query())

    @staticmethod
    def _without(part: _Part, excluded: _Part) -> _Part:
        clauses = [(Occur.Must, part.query), (Occur.MustNot, excluded.query)]
        return _Part(part.mask & ~excluded.mask, Query.boolean_query(clauses))
