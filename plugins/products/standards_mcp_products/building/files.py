"""Reads rows of CSV, JSONL and Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from standards_mcp import InvalidInputError
from standards_mcp.commands import install_command

from .columns import Columns

LONGEST_CELL: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that cannot be read.

    Attributes:
        reason: Why.
    """

    reason: str


Row: TypeAlias = Mapping[str, Any] | Unreadable


def read_rows(file: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a file in their order.

    Raises:
        InvalidInputError: The file cannot be read, or has no column that each product needs.
    """
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise InvalidInputError(f"{file} is none of {', '.join(SUFFIXES)}.")
    try:
        yield from reader(file, columns)
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror or error}") from None


def _csv(file: Path, columns: Columns) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        # Else a quote that nobody closes takes in the rows below it.
        reader, first = csv.DictReader(lines, strict=True), 1
        try:
            columns.check([_shown(each) for each in reader.fieldnames or ()])
            first = reader.line_num + 1
            for row in reader:
                yield _csv_row(cast("dict[str | None, Any]", row))
                first = reader.line_num + 1
        except csv.Error as error:
            raise InvalidInputError(
                f"{file}, in the row from line {first} on: {error}. A cell that begins with a "
                "quote ends with one, and those within it are doubled."
            ) from None


def _csv_row(row: Mapping[str | None, Any]) -> Row:
    if None in row:
        return Unreadable("has more cells than the heading")
    if any(_is_broken(each) for each in row.values() if each):
        return Unreadable("is not UTF-8")
    return cast("Mapping[str, Any]", row)


def _jsonl(file: Path, _: Columns) -> Iterator[Row]:
    with file.open("rb") as lines:
        for line in lines:
            if not line.strip():
                continue
            try:
                found = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield cast("dict[str, Any]", found)
            else:
                yield Unreadable("is no JSON object")


def _parquet(file: Path, columns: Columns) -> Iterator[Row]:
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInputError(
            f"Parquet needs pyarrow. Run `{install_command('standards-mcp-products', 'parquet')}`."
        ) from None
    try:
        with parquet.ParquetFile(file) as opened:
            columns.check(opened.schema_arrow.names)
            for batch in opened.iter_batches(columns=columns.sources):
                yield from _parquet_rows(batch)
    except pyarrow.ArrowException as error:
        raise InvalidInputError(f"{file} cannot be read as Parquet: {error}") from None


def _parquet_rows(batch: Any) -> Iterator[Row]:
    try:
        yield from batch.to_pylist()
    # A text that is not UTF-8, a time that Python has not, an unknown time zone.
    except (ValueError, OverflowError, LookupError):
        if batch.num_rows == 1:
            yield Unreadable("has a value that cannot be read")
            return
        for position in range(batch.num_rows):
            yield from _parquet_rows(batch.slice(position, 1))


def _is_broken(text: str) -> bool:
    return any("\udc80" <= each <= "\udcff" for each in text)


def _shown(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


_READERS: Final[Mapping[str, Callable[[Path, Columns], Iterator[Row]]]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
SUFFIXES: Final = tuple(_READERS)
