"""Read the headings and rows of CSV, JSONL and Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from standards_mcp import InvalidInputError
from standards_mcp.commands import install_command

from .columns import Columns

MAX_CELL_LENGTH: Final = 10_000_000
_MAX_HEADING_LENGTH: Final = 1_000_000
_DELIMITERS: Final = ",;\t"
"""Candidates. The most frequent one in the first line wins; for equal counts, the earlier one."""
_NAMED_DELIMITER: Final = re.compile(r"sep=([^\w\s\"]|\t)\s*", re.IGNORECASE)
"""The line that Excel writes before the heading."""

Row: TypeAlias = Mapping[str, Any] | str
"""The cells of a row, or the reason why the row cannot be read, such as "is not UTF-8"."""
Readers: TypeAlias = tuple[Callable[[Path], list[str]], Callable[[Path, Columns], Iterator[Row]]]


def readers_of(file: Path) -> Readers:
    """Return two functions for the format of a file: one reads the heading, one yields the rows.

    The heading of JSONL consists of the keys of all rows.
    """
    readers = _BY_SUFFIX.get(file.suffix.lower())
    if readers is None:
        raise InvalidInputError(f"{file} has an unknown format; use {', '.join(SUFFIXES)}.")
    return readers


def delimiter(file: Path) -> str:
    """Return the character between the cells of a CSV file; an empty string for other formats."""
    if readers_of(file) is not _CSV:
        return ""
    with file.open("rb") as lines:
        first_line = lines.readline(_MAX_HEADING_LENGTH).decode("utf-8-sig", "replace")
    if named := _NAMED_DELIMITER.fullmatch(first_line):
        return named[1]
    is_tsv = file.suffix.casefold() == ".tsv"
    return "\t" if is_tsv else max(_DELIMITERS, key=first_line.count)


def _csv_heading(file: Path) -> list[str]:
    with closing(_csv(file)) as rows:
        return next(rows, list[str]())


def _csv_rows(file: Path, _: Columns) -> Iterator[Row]:
    rows = _csv(file)
    heading = next(rows, list[str]())
    for cells in rows:
        if len(cells) > len(heading):
            yield "has more cells than the heading"
        elif any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
            yield "is not UTF-8"
        else:
            # If columns have the same name, the first one counts.
            yield dict(reversed(list(zip(heading, cells, strict=False))))


def _csv(file: Path) -> Generator[list[str]]:
    """Yield the heading, then the cells of each non-empty row."""
    csv.field_size_limit(MAX_CELL_LENGTH)
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        # Without `strict`, an unclosed quote would swallow the following rows.
        reader, first_line = csv.reader(lines, delimiter=delimiter(file), strict=True), 1
        try:
            for cells in reader:
                names_delimiter = first_line == 1 and "".join(cells).lower() == "sep="
                if cells and not names_delimiter:
                    yield cells
                first_line = reader.line_num + 1
        except csv.Error as error:
            raise InvalidInputError(
                f"{file}, in the row from line {first_line} on: {error}. A cell that begins with a "
                "quote must end with one, and quotes inside of it must be doubled."
            ) from None


def _jsonl_heading(file: Path) -> list[str]:
    rows = (row for row in _jsonl_rows(file) if not isinstance(row, str))
    return list(dict.fromkeys(key for row in rows for key in row))


def _jsonl_rows(file: Path, _: Columns | None = None) -> Iterator[Row]:
    with file.open("rb") as lines:
        for line in lines:
            if not line.strip():
                continue
            try:
                parsed = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                parsed = None
            if isinstance(parsed, dict):
                yield cast("dict[str, Any]", parsed)
            else:
                yield "is not a JSON object"


def _parquet_heading(file: Path) -> list[str]:
    with _parquet(file) as opened:
        return list(opened.schema_arrow.names)


def _parquet_rows(file: Path, columns: Columns) -> Iterator[Row]:
    with _parquet(file) as opened:
        for batch in opened.iter_batches(columns=list(chain(*columns.mapping.values()))):
            yield from _batch_rows(batch)


@contextmanager
def _parquet(file: Path) -> Generator[Any]:
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInputError(
            f"Parquet needs pyarrow. Run `{install_command('standards-mcp-products', 'parquet')}`."
        ) from None
    try:
        with parquet.ParquetFile(file) as opened:
            yield opened
    except pyarrow.ArrowException as error:
        raise InvalidInputError(f"{file} cannot be read as Parquet: {error}") from None


def _batch_rows(batch: Any) -> Iterator[Row]:
    try:
        yield from batch.to_pylist()
    # Invalid UTF-8, a time outside of Python's range, an unknown time zone.
    except (ValueError, OverflowError, LookupError):
        if batch.num_rows == 1:
            yield "has a value that cannot be read"
            return
        for position in range(batch.num_rows):
            yield from _batch_rows(batch.slice(position, 1))


_CSV: Final[Readers] = (_csv_heading, _csv_rows)
_BY_SUFFIX: Final[Mapping[str, Readers]] = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".jsonl": (_jsonl_heading, _jsonl_rows),
    ".parquet": (_parquet_heading, _parquet_rows),
}
SUFFIXES: Final = tuple(_BY_SUFFIX)
