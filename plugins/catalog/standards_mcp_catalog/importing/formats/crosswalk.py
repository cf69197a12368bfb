"""Crosswalks as tables: on each row two standards, by code or id, and how they are related.

The first line names the columns, in any order, as people name them: ``from``, ``to``,
``relation``; ``Source Code``, ``Target Code``, ``Match``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Final, NamedTuple

from standards_mcp_catalog.importing.report import Problem, SourceError, Statement, lost, note
from standards_mcp_catalog.relations import Crosswalk

from .tables import LONGEST_ROW, column_name, read_rows
from .values import Lines, clean

_LONGEST_CELL: Final = 512
# After "from" or "to". A column of identifiers is preferred to a column of codes.
_ENDINGS: Final = ("id guid uuid uri identifier nodeuri", "standardid standard code notation", "")
_STARTS: Final = ("from", "source", "origin")
_ENDS: Final = ("to", "target", "destination")
_RELATIONS: Final = (
    "relation", "relationship", "association", "associationtype", "relationtype",
    "relationshiptype", "match", "matchtype", "mapping", "mappingtype", "alignment",
    "alignmenttype", "type",
)  # fmt: skip


class _Columns(NamedTuple):
    """Column numbers; for an end, several in the order of preference."""

    start: Sequence[int]
    relation: Sequence[int]
    end: Sequence[int]


def is_crosswalk(text: str) -> bool:
    """Return whether a table that begins with *text* is a crosswalk."""
    try:
        _, first = next(read_rows(text.splitlines(keepends=True), _count_columns), (0, list[str]()))
    except SourceError:  # the reader of the whole table reports the error
        return False
    columns = _find_columns(first)
    names = set(map(column_name, first))
    has_standards = "text" in names and bool(names & {"code", "id"})
    is_named = bool(columns.relation) or "text" not in names
    return bool(columns.start and columns.end) and is_named and not has_standards


def advice_on(cells: Sequence[str]) -> str:
    """Return advice if these columns may be a crosswalk, else ""."""
    if not _find_columns(cells).relation:
        return ""
    return "; if it is a crosswalk, call its columns from, to and relation"


def read_crosswalk(stream: IO[bytes], source: str) -> Iterator[Statement | Problem]:
    """Yield the statements of a crosswalk.

    Args:
        stream: The file; UTF-8, UTF-16 with a byte order mark, or Windows-1252.
        source: The name of the document, such as ``folder/a.zip:walk.csv``; the last part of it is
            the name of the crosswalk.

    Raises:
        SourceError: The file has an unknown encoding, a damaged row, or too many rows or columns.
    """
    name = clean(re.split(r"[/\\:]", source.partition("?")[0])[-1]).removesuffix(".gz") or source
    lines = Lines(stream, LONGEST_ROW)
    # Only a table that could be read to its end may replace a crosswalk.
    items = list(_items(lines, source, Crosswalk(name, name)))
    if lines.has_windows:
        yield note("not UTF-8", source, detail="read as Windows-1252")
    yield from items or [lost("crosswalk without rows", source, records=0)]


def _items(
    lines: Iterable[str], source: str, crosswalk: Crosswalk
) -> Iterator[Statement | Problem]:
    columns: _Columns | None = None
    for line, cells in read_rows(lines, _count_columns):
        if columns is None:
            columns = _find_columns(cells)
            if not all(columns):
                names = ", ".join(map(clean, cells))[:200]
                detail = f"a crosswalk has the columns from, to and relation; these are {names}"
                yield lost("no crosswalk", source, f"line {line}", detail, records=0)
                return
            continue
        start, relation, end = (_first_of(cells, indexes) for indexes in columns)
        yield Statement(
            crosswalk=crosswalk, start=start, relation=relation, end=end, source=source,
            where=f"line {line}",
        )  # fmt: skip


def _first_of(cells: Sequence[str], indexes: Iterable[int]) -> str:
    found = (clean(cells[index])[:_LONGEST_CELL] for index in indexes if index < len(cells))
    return next(filter(None, found), "")


def _find_columns(cells: Sequence[str]) -> _Columns:
    names = [re.sub(r"[\W_]+", "", cell).casefold() for cell in cells]
    relation = sorted(
        (index for index, name in enumerate(names) if name in _RELATIONS),
        key=lambda index: _RELATIONS.index(names[index]),
    )
    return _Columns(_indexes(names, _STARTS), relation[:1], _indexes(names, _ENDS))


def _indexes(names: Sequence[str], words: Iterable[str]) -> list[int]:
    wanted = [word + each for group in _ENDINGS for each in group.split() or [""] for word in words]
    return [names.index(each) for each in wanted if each in names]


def _count_columns(cells: Sequence[str]) -> int:
    return sum(map(len, _find_columns(cells)))
