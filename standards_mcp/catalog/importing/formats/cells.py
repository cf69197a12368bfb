"""The cells of a table as text: which delimiter it has, and which lines make one row.

Quotation marks may be wrong: one that is never closed would take in the rest of the file, or end
where the next cell begins. The line that it stands in is then read on its own.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

_DELIMITERS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # written by spreadsheets


class Row(NamedTuple):
    """One row of a table.

    Attributes:
        line: The number of its first line, from 1.
        damage: What is wrong with it; the cells are then those of its first line, or none.
    """

    line: int
    cells: Sequence[str]
    damage: str = ""


def read_rows(text: str, known: Callable[[Sequence[str]], int]) -> Iterator[Row]:
    """Yield the rows of a table that are not blank.

    Args:
        known: How many of the cells of a first line are names of columns, to choose a delimiter.
    """
    lines = list(io.StringIO(text, newline=""))
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    mark = _SEPARATOR_LINE.fullmatch(lines[first]) if first < len(lines) else None
    if mark is not None:
        delimiter, first = mark[1], first + 1
    else:
        header = "".join(lines[first : first + 1])
        delimiter = max(_DELIMITERS, key=lambda each: known(header.split(each)))
    for row in _rows(lines, first, delimiter):
        if row.damage or any(cell.strip() for cell in row.cells):
            yield row


def _rows(lines: Sequence[str], start: int, delimiter: str) -> Iterator[Row]:
    while start < len(lines):
        begun = start
        rest = (lines[number] for number in range(begun, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter)
        try:
            for cells in reader:
                end = begun + reader.line_num
                if end - start > 1 and not _is_sound(lines[start:end], delimiter):
                    break
                yield Row(start + 1, cells)
                start = end
            else:
                return
        except csv.Error:
            pass  # the quotation goes on for longer than any cell may
        yield _alone(lines[start], start + 1, delimiter)
        start += 1


def _is_sound(lines: Sequence[str], delimiter: str) -> bool:
    """Return whether the quotation marks of a row over several lines are right."""
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _alone(line: str, number: int, delimiter: str) -> Row:
    try:
        (cells,) = csv.reader([line], delimiter=delimiter, quoting=csv.QUOTE_NONE)
    except csv.Error as error:
        return Row(number, (), str(error))
    damage = "a quotation mark is not closed; the line was read without any"
    return Row(number, [cell.strip().strip('"') for cell in cells], damage)
