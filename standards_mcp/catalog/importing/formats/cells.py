"""The cells of a table as text: which delimiter it has, and which lines make one row.

Quotation marks may be wrong: one that is never closed would take in the rest of the file, or end
where the next cell begins. The line that it stands in is then read on its own.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Final, NamedTuple

LONGEST_ROW: Final = 2**20
"""How many characters one row may have, over all its lines."""
MOST_COLUMNS: Final = 1_000
_DELIMITERS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # written by spreadsheets
_LONGEST_CELL: Final = csv.field_size_limit()


class Row(NamedTuple):
    """One row of a table.

    Attributes:
        line: The number of its first line, from 1.
        damage: What is wrong with it; the cells are then those of its first line, or none.
    """

    line: int
    cells: Sequence[str]
    damage: str = ""


def read_rows(lines: Iterable[str], known: Callable[[Sequence[str]], int]) -> Iterator[Row]:
    """Yield the rows of a table that are not blank.

    Args:
        known: How many of the cells of a first line are names of columns, to choose a delimiter.
    """
    ahead = _Ahead(lines)
    delimiter = ""
    for number, line in ahead:
        if not delimiter:
            if not line.strip():
                continue
            if mark := _SEPARATOR_LINE.fullmatch(line):
                delimiter = mark[1]
                continue
            delimiter = max(_DELIMITERS, key=lambda each: known(line.split(each, MOST_COLUMNS)))
        row = _row(number, line, ahead, delimiter)
        if row.damage or any(map(str.strip, row.cells)):
            yield row


class _Ahead:
    """Numbered lines, some of which may be looked at before they are their turn."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = zip(count(1), lines)
        self._seen: deque[tuple[int, str]] = deque()
        self._single = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while True:
            if self._seen:
                yield self._seen.popleft()
            elif (line := next(self._lines, None)) is not None:
                yield line
            else:
                return

    def begins_quotation(self, number: int) -> bool:
        """Return whether a quotation may begin at this line and end at a later one."""
        return number > self._single

    def quotation(self, first: str, delimiter: str) -> list[str] | None:
        """Return the cells of a row over several lines that begins with *first*, or None.

        A line is looked at for one such row only. Whatever stands there, the time that it takes
        is in proportion to the length of the file.
        """
        taken: list[tuple[int, str]] = []
        try:
            cells = next(csv.reader(self._taking(first, taken), delimiter=delimiter, strict=True))
        except (csv.Error, StopIteration):
            self._seen.extendleft(reversed(taken))
            # The last one is where it went wrong: its quotation mark may begin another.
            self._single = taken[-2][0] if len(taken) > 1 else 0
            return None
        return cells

    def _taking(self, first: str, taken: list[tuple[int, str]]) -> Iterator[str]:
        yield first
        length = len(first)
        for number, line in self:
            taken.append((number, line))
            length += len(line)
            if length > LONGEST_ROW:
                return
            yield line


def _row(number: int, line: str, ahead: _Ahead, delimiter: str) -> Row:
    if len(line) > LONGEST_ROW:
        return Row(number, (), f"it has more than {LONGEST_ROW:,} characters")
    if '"' not in line and len(line) < _LONGEST_CELL:
        return Row(number, line.rstrip("\r\n").split(delimiter))
    try:
        # The blank line after it is a row of its own, unless a quotation takes it in.
        found = list(csv.reader((line, "\n"), delimiter=delimiter))
        if len(found) > 1:
            return Row(number, found[0])
        cells = ahead.quotation(line, delimiter) if ahead.begins_quotation(number) else None
        return _alone(line, number, delimiter) if cells is None else Row(number, cells)
    except csv.Error as error:
        return Row(number, (), str(error))


def _alone(line: str, number: int, delimiter: str) -> Row:
    cells = line.rstrip("\r\n").split(delimiter)
    damage = "a quotation mark is not closed; the line was read without any"
    return Row(number, [cell.strip().strip('"') for cell in cells], damage)
