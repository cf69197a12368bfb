"""Read the rows and the header of a CSV table."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from standards_mcp_catalog.importing.report import Problem, SourceError, note

from .values import clean

LONGEST_ROW: Final = 2**20
"""How many characters one row may have, over all its lines."""
MOST_COLUMNS: Final = 1_000
MOST_ROWS: Final = 2_000_000
_DELIMITERS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(r'sep=([^\s"]|\t)\s*', re.IGNORECASE)  # written by spreadsheets


def read_rows(
    lines: Iterable[str], count_names: Callable[[Sequence[str]], int]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line and the cells of each row that is not blank.

    Args:
        count_names: Counts the known column names in a header, to choose the delimiter.

    Raises:
        SourceError: There are too many columns or rows, a quotation mark is wrong, or a row is too
            long, so that the beginning of the next row is unknown.
    """
    numbered = enumerate(lines, 1)
    delimiter = ""
    for number, line in numbered:
        if mark := _SEPARATOR_LINE.fullmatch(line):
            delimiter = mark[1]
        elif line.strip():
            delimiter = delimiter or max(
                _DELIMITERS, key=lambda each: count_names(line.split(each, MOST_COLUMNS))
            )
            rest = (line for _, line in numbered)
            yield from _parse_rows(number, chain([line], rest), delimiter)


def _parse_rows(
    number: int, lines: Iterable[str], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of *lines*, which begin with line *number*."""
    row_lines = _RowLines(lines)
    # Strict: a repaired row can take a comma for the end of a cell, and then a wrong text looks
    # right. Real tables did not need repairs.
    reader = csv.reader(row_lines, delimiter=delimiter, strict=True)
    first, count = number, 0
    try:
        for cells in reader:
            count += 1
            if count > MOST_ROWS:
                raise SourceError(f"it has more than {MOST_ROWS:,} rows; split it")
            if first == number and len(cells) > MOST_COLUMNS:
                raise SourceError(
                    f"it has more than {MOST_COLUMNS:,} columns; delete the columns that are not "
                    "needed"
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


COLUMNS: Final[Mapping[str, str]] = {
    "id": "any text that never changes; made from set and code by default",
    "code": "the code people use, such as 3.NF.A.1; required without an id",
    "text": "the text of the standard; required",
    "parent": "the id or the code of the row above this one in the tree",
    "grades": "3, K-2, high school ...; if empty, the parent's grades",
    "subject": "Mathematics",
    "jurisdiction": "the state or organization",
    "set_title": "the name of the collection, such as Grade 3",
    "set_id": "made from jurisdiction, subject and set_title by default",
    "label": "Domain, Cluster, Standard ...",
    "other_codes": "more codes of the same standard, separated by |",
    "order": "a number; by default the order of the file",
    "document": "the title of the published document",
    "edition": "its year or version",
    "license": "terms of use of the text",
    "rights_holder": "whose text it is",
    "source_url": "where the official text is",
}
# Other names of a column, in any case, with any separators, and also after one of `_PREFIXES`.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "id": "guid identifier uuid uid asn_id case_id",
    "code": "notation number no human_coding_scheme humancodingscheme coding_scheme short_code"
    " abbreviation standard_id benchmark_id indicator_id standard_identifier",
    "text": "description statement fullstatement full_statement standard benchmark indicator"
    " expectation performance_expectation objective learning_objective outcome learning_outcome"
    " wording full_text",
    "parent": "parent_id parent_code parent_standard",
    "grades": "grade grade_level grade_levels grade_band grade_bands grade_range"
    " education_level education_levels",
    "subject": "subject_area content_area discipline learning_area",
    "jurisdiction": "state state_name organization organisation publisher agency district",
    "set_title": "set standard_set_title set_name framework collection",
    "set_id": "standard_set_id",
    "label": "type statement_label statement_type level_name hierarchy_level",
    "other_codes": "alt_statement_notations alternate_codes alternate_code alt_codes old_code"
    " other_code",
    "order": "sequence sort_order position",
    "edition": "valid year version adopted adoption_year",
    "license": "licence",
    "source_url": "url uri link web_address source_link",
}
_ALIASES: Final = {alias: name for name, found in _OTHER_NAMES.items() for alias in found.split()}
_CAMEL_CASE: Final = re.compile("(?<=[a-z])(?=[A-Z])")
_PREFIXES: Final = ("statement", "standard", "standards", "benchmark", "indicator", "learning")
_COMPUTED: Final = frozenset(
    {
        "content", "depth", "is_leaf", "is_root", "root_id", "ancestor_ids", "child_ids",
        "sibling_count",
    }
)  # fmt: skip


def column_name(cell: str) -> str:
    """Return the name in `COLUMNS` for a cell of the header, or else the normalized cell."""
    name = _normalized(cell)
    if known := name if name in COLUMNS else _ALIASES.get(name):
        return known
    prefix, _, rest = name.partition("_")
    if prefix in _PREFIXES and (known := rest if rest in COLUMNS else _ALIASES.get(rest)):
        return known
    return name


def read_header(
    cells: Sequence[str], source: str, where: str, optional: Collection[str] = ()
) -> tuple[list[str], list[Problem]]:
    """Return the name of each column, "" if it is ignored, and notes for the report.

    Args:
        source: The name of the document, for problems.
        where: The line in it.
        optional: Columns that may be missing, because an option has their value.
    """
    names = _column_names(cells)
    details, aliases, read_as = list[tuple[str, str]](), list[str](), _chosen_columns(names, cells)
    for index, name in enumerate(names):
        cell = clean(cells[index])[:80]
        if index != read_as.get(name, index):
            names[index] = ""
            column = f"column {index + 1} {cell!r}; column {read_as[name] + 1} was read as {name}"
            details.append(("column given twice", column))
        elif name in _COMPUTED:  # by `build_tree`
            names[index] = ""
            details.append(("column not needed", f"{name!r} is computed"))
        elif name and name not in COLUMNS:
            close = difflib.get_close_matches(name, COLUMNS, n=1)
            advice = f"did you mean {close[0]!r}?" if close else "kept as it is"
            details.append(("unknown column", f"{name[:80]!r}; {advice}"))
        elif name != _normalized(cell):
            aliases.append(f"{cell!r} as {name}")
    if aliases:
        details.append(("column read by its meaning", ", ".join(aliases)))
    if missing := [name for name in ("subject", "jurisdiction") if name not in (*names, *optional)]:
        details.append(("column missing", f"{' and '.join(missing)} will be 'Unspecified'"))
    return names, [note(reason, source, where, detail) for reason, detail in details]


def _chosen_columns(names: Sequence[str], cells: Sequence[str]) -> dict[str, int]:
    """Return the column that is read for each name: the one with the exact name, or the first."""
    chosen = dict[str, int]()
    for index, (name, cell) in enumerate(zip(names, cells, strict=True)):
        is_exact = _normalized(cell) == name
        if name and (name not in chosen or is_exact > (_normalized(cells[chosen[name]]) == name)):
            chosen[name] = index
    return chosen


def _column_names(cells: Sequence[str]) -> list[str]:
    names = [column_name(cell) for cell in cells]
    if names.count("text") > 1 and "code" not in names:
        # "Standard" and "Description" side by side are a code and its text.
        codes = (index for index, cell in enumerate(cells) if _normalized(cell) in _PREFIXES)
        if (index := next(codes, None)) is not None:
            names[index] = "code"
    return names


def _normalized(cell: str) -> str:
    words = _CAMEL_CASE.sub("_", clean(cell).strip("\"' "))
    return re.sub(r"\W+", "_", words.casefold()).strip("_")
