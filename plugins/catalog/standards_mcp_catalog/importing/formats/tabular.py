"""Tables of standards, as spreadsheets save them: CSV, with commas, semicolons or tabs.

The first line names the columns. `COLUMNS` documents each of them, `template` shows them.
"""

from __future__ import annotations

import csv
import io
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import IO, Any, Final, NamedTuple, TypeAlias

from standards_mcp_catalog.importing.report import Problem, lost, note
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.vocabulary.grades import GRADES, normalize_levels
from standards_mcp_catalog.vocabulary.notation import guid_of

from .crosswalk import advice_on
from .tables import COLUMNS, LONGEST_ROW, column_name, read_header, read_rows
from .tree import Node, build_tree
from .values import Lines, clean_all, present

_EXAMPLE: Final = (
    ("D1-M", "M", "Counting and comparing", "", "K-2", "Domain"),
    ("D1-M-1", "M.1", "Count up to 100 things in several ways.", "M", "1", "Standard"),
    ("D1-M-2", "M.2", "Say which of two groups has more.", "M", "1", "Standard"),
)
_NUMBER: Final = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?")
_Shared: TypeAlias = tuple[tuple[str, str], ...]


class _Row(NamedTuple):
    """A row; cells that it lacks are empty.

    Attributes:
        where: The name of the row in problems.
        shared: The other cells that are not empty, by column; many rows have the same ones.
    """

    where: str
    id: str
    code: str
    text: str
    parent: str
    grades: str
    order: str
    shared: _Shared


_MAIN: Final = _Row._fields[1:-1]


class _Columns:
    """The columns of one table.

    Args:
        names: See `read_header`.
        jurisdiction: Default for rows without one.
    """

    def __init__(self, names: Sequence[str], jurisdiction: str) -> None:
        self.count = len(names)
        self._jurisdiction = jurisdiction
        # Missing columns read the last cell, an empty one that is added to every row.
        self._own = itemgetter(*(names.index(name) if name in names else -1 for name in _MAIN))
        self._others = [index for index, name in enumerate(names) if name and name not in _MAIN]
        self._names = tuple(names[index] for index in self._others)

    def row(self, cells: Sequence[str], where: str) -> _Row:
        """Return the row with these cells; cells at the end may be missing."""
        texts = clean_all(cells[: self.count])
        texts += [""] * (self.count - len(texts) + 1)
        own = self._own(texts)
        others = tuple([texts[index] for index in self._others])
        shared = _shared(self._names, others, self._jurisdiction)
        return _Row._make((f"{where} ({(own[1] or own[0])[:80]})", *own, shared))


def template() -> str:
    """Return a table with every column and three rows that show how to fill it."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for id_, code, text, parent, grades, label in _EXAMPLE:
        row = {"id": id_, "code": code, "text": text, "parent": parent, "grades": grades}
        fixed = {"subject": "Mathematics", "jurisdiction": "My District", "set_title": "Grade 1"}
        writer.writerow(row | {"label": label} | fixed)
    return file.getvalue()


def read_table(
    stream: IO[bytes], source: str, jurisdiction: str = ""
) -> Iterator[StandardRecord | Problem]:
    """Yield the records of a table, set by set.

    Args:
        stream: The file; UTF-8, UTF-16 with a byte order mark, or Windows-1252.
        source: The name of the document, for problems.
        jurisdiction: Default for rows without one.

    Raises:
        SourceError: The file has an unknown encoding, a damaged row, or too many rows or columns.
    """
    lines = Lines(stream, LONGEST_ROW)
    sets = defaultdict[str, list[_Row]](list)
    has_skipped = False
    for item in _rows(lines, source, jurisdiction):
        if isinstance(item, Problem):
            has_skipped = has_skipped or item.skipped
            yield item
        else:
            sets[_set_id(item.shared)].append(item)
    if lines.has_windows:
        yield note("not UTF-8", source, detail="read as Windows-1252")
    if not (sets or has_skipped):
        yield lost("table without rows", source, records=0)
    for set_id, rows in sets.items():
        yield from _read_set(set_id, rows, source)


def _rows(lines: Iterable[str], source: str, jurisdiction: str) -> Iterator[_Row | Problem]:
    columns: _Columns | None = None
    for line, cells in read_rows(lines, _count_known):
        where = f"line {line}"
        if columns:
            yield from _checked_row(columns, cells, source, where)
            continue
        optional = ("jurisdiction",) if jurisdiction else ()
        names, problems = read_header(cells, source, where, optional)
        yield from problems
        if "text" not in names:
            detail = f"the columns are {', '.join(filter(None, names))[:200]}{advice_on(cells)}"
            yield lost("no column named text", source, where, detail, 0)
            return
        columns = _Columns(names, jurisdiction)


def _count_known(cells: Sequence[str]) -> int:
    return sum(column_name(cell) in COLUMNS for cell in cells)


def _checked_row(
    columns: _Columns, cells: Sequence[str], source: str, where: str
) -> Iterator[_Row | Problem]:
    row = columns.row(cells, where)
    if not (row.code or row.id):
        yield lost("neither id nor code", source, where)
        return
    if len(cells) > columns.count and any(map(str.strip, cells[columns.count :])):
        detail = f"{len(cells):,} cells for {columns.count:,} columns"
        yield lost("more cells than columns", source, row.where, detail)
        return
    if row.order and not _NUMBER.fullmatch(row.order):
        detail = f"order is {row.order[:80]!r}; its position in the file is used"
        yield note("not a number", source, row.where, detail)
    yield row


@lru_cache(1_024)
def _shared(names: Sequence[str], cells: Sequence[str], jurisdiction: str) -> _Shared:
    found = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    if jurisdiction:
        found.setdefault("jurisdiction", jurisdiction)
    return tuple(found.items())


@lru_cache(1_024)
def _set_id(shared: _Shared) -> str:
    row = dict(shared)
    named = (row.get(name) for name in ("jurisdiction", "subject", "set_title"))
    return row.get("set_id") or _slug("-".join(filter(None, named))) or "unnamed"


@lru_cache(1_024)
def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.casefold()).strip("-")


def _read_set(set_id: str, rows: Iterable[_Row], source: str) -> Iterator[StandardRecord | Problem]:
    ids: dict[str, str] = {}
    nodes: list[Node] = []
    for row in rows:
        id_ = row.id or ids.get(row.code) or _id_from_code(set_id, row.code)
        ids.setdefault(row.code, id_)
        nodes.append(_node(set_id, id_, row, len(nodes)))
        if unknown := _unknown_levels(nodes[-1].levels):
            yield note("unknown education level", source, row.where, unknown)
    for node in nodes:
        node.parents = tuple([ids.get(parent, parent) for parent in node.parents])
    yield from build_tree(nodes, lambda _: {"standard_set_id": set_id}, source)


def _id_from_code(set_id: str, code: str) -> str:
    """Return an id for a row without one: the same whenever the same set is read again."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{set_id}\n{code}").hex.upper()


def _node(set_id: str, id_: str, row: _Row, position: int) -> Node:
    return Node(
        id=id_,
        description=row.text,
        notation=row.code,
        parents=(row.parent,) if row.parent else (),
        order=float(row.order) if row.order and _NUMBER.fullmatch(row.order) else position,
        levels=_levels(row.grades) if row.grades else (),
        fields=_fields(set_id, row.shared),
        where=row.where,
    )


@lru_cache(1_024)
def _levels(grades: str) -> tuple[str, ...]:
    return normalize_levels([grades])


@lru_cache(1_024)
def _unknown_levels(levels: tuple[str, ...]) -> str:
    return ", ".join(level for level in levels if level not in GRADES)[:200]


@lru_cache(1_024)
def _fields(set_id: str, shared: _Shared) -> Mapping[str, Any]:
    """Return the fields of a record that many rows have in common."""
    row = dict(shared)
    codes = row.get("other_codes", "").split("|")
    jurisdiction = row.get("jurisdiction") or "Unspecified"
    extra: dict[str, Any] = {name: value for name, value in shared if name not in COLUMNS}
    named = {
        "standard_set_title": row.get("set_title") or _set_title(set_id, row),
        "subject": row.get("subject") or "Unspecified",
        "jurisdiction_id": _slug(jurisdiction) or "unknown",
        "jurisdiction_title": jurisdiction,
        "statement_label": row.get("label"),
        "alt_statement_notations": [each for each in map(str.strip, codes) if each],
        "document_title": row.get("document"),
        "document_valid": row.get("edition"),
        "license": row.get("license"),
        "rights_holder": row.get("rights_holder"),
        "source_url": row.get("source_url"),
    }
    return present(extra | named)


def _set_title(set_id: str, row: Mapping[str, str]) -> str:
    """Return a title for a set without one: its id if this reads as a name."""
    if row.get("set_id") and not guid_of(set_id):
        return set_id
    names = (row.get("document"), row.get("subject"), row.get("jurisdiction"))
    return next(filter(None, names), set_id)
