"""Rows of CSV tables: parse them with `csv`, and keep them by group on disk."""

from __future__ import annotations

import csv
import marshal
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Self, TypeAlias

from standards_mcp_catalog.importing.report import SourceError

LONGEST_ROW: Final = 2**20
"""How many characters one row may have, over all its lines."""
MOST_COLUMNS: Final = 1_000
MOST_ROWS: Final = 2_000_000
_DELIMITERS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(r'sep=([^\s"]|\t)\s*', re.IGNORECASE)  # written by spreadsheets
_TOGETHER: Final = 64
_IN_MEMORY: Final = 2**24

Row: TypeAlias = tuple[Any, ...]
"""Texts, and tuples of them."""


def read_rows(
    lines: Iterable[str], known: Callable[[Sequence[str]], int]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line and the cells of each row that is not blank.

    Args:
        known: Counts the cells of the header that are names of columns, to choose a delimiter.

    Raises:
        SourceError: There are too many columns, a quotation mark is wrong, or a row is too long.
            Where the next row begins is then unknown.
    """
    numbered = enumerate(lines, 1)
    delimiter = ""
    for number, line in numbered:
        if mark := _SEPARATOR_LINE.fullmatch(line):
            delimiter = mark[1]
        elif line.strip():
            delimiter = delimiter or max(
                _DELIMITERS, key=lambda each: known(line.split(each, MOST_COLUMNS))
            )
            rest = (line for _, line in numbered)
            yield from _parsed(number, chain([line], rest), delimiter)


def _parsed(number: int, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of *lines*, which begin with line *number*."""
    row_lines = _RowLines(lines)
    reader = csv.reader(row_lines, delimiter=delimiter, strict=True)
    first = number
    try:
        for cells in reader:
            if first == number and len(cells) > MOST_COLUMNS:
                raise SourceError(
                    f"it has more than {MOST_COLUMNS:,} columns; delete those that are not needed"
                )
            if any(map(str.strip, cells)):
                yield first, cells
            first = number + reader.line_num
            row_lines.length = 0
    except csv.Error as error:
        raise SourceError(
            f"line {first}: {error}; close each quotation mark of this row, and double those "
            "inside a cell"
        ) from None


class _RowLines:
    """Lines for `csv`, with a limit for the length of one row."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.length = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.length += len(line)
            if self.length > LONGEST_ROW:
                raise csv.Error(f"row with more than {LONGEST_ROW:,} characters")
            yield line


class RowStore:
    """Rows in groups, in a file that only this process sees once they are many."""

    def __init__(self) -> None:
        self._file: Any = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  see __exit__
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._last: dict[str, list[Row]] = {}
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, group: str, row: Row) -> None:
        """Keep *row* as the last of its group. No row may be read before all are added.

        Raises:
            SourceError: There are too many rows.
        """
        self.count += 1
        if self.count > MOST_ROWS:
            raise SourceError(f"it has more than {MOST_ROWS:,} rows; split it")
        last = self._last.setdefault(group, [])
        last.append(tuple(row))  # marshal writes no named tuples
        # A temporary table of SQLite with one row each takes five times as long.
        if len(last) == _TOGETHER:
            data = marshal.dumps(last)
            self._places.setdefault(group, []).append((self._file.tell(), len(data)))
            self._file.write(data)
            last.clear()

    def groups(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """Yield each group with its rows, both in the order in which they were added."""
        for group in self._last:
            yield group, self._rows(group)

    def _rows(self, group: str) -> Iterator[Row]:
        for place, size in self._places.get(group, ()):
            self._file.seek(place)
            yield from marshal.loads(self._file.read(size))  # noqa: S302  written above
        yield from self._last[group]
