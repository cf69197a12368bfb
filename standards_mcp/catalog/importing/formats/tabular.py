"""Tables of standards, as spreadsheets save them: CSV, with commas, semicolons or tabs.

The first line names the columns. `COLUMNS` documents each of them, `template` shows them.
"""

from __future__ import annotations

import csv
import io
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any, Final

from standards_mcp.catalog.importing.problems import Problem, SourceError, lost, note
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.vocabulary.grades import GRADES, normalize_levels
from standards_mcp.catalog.vocabulary.notation import guid_of

from .cells import LONGEST_ROW, MOST_COLUMNS, read_rows
from .crosswalk import advice_on
from .decoding import lines_of
from .header import COLUMNS, column_name, read_header
from .rows import Row, RowStore
from .text import clean
from .tree import Node, build_tree
from .values import present

MOST_ROWS: Final = 2_000_000
_EXAMPLE: Final = (
    ("D1-M", "M", "Counting and comparing", "", "K-2", "Domain"),
    ("D1-M-1", "M.1", "Count up to 100 things in several ways.", "M", "1", "Standard"),
    ("D1-M-2", "M.2", "Say which of two groups has more.", "M", "1", "Standard"),
)
_OWN: Final = frozenset({"", "id", "code", "text", "parent", "grades", "order"})
_NUMBER: Final = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?")


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
        jurisdiction: That of the rows that have none.

    Raises:
        SourceError: It has an encoding that is not read, or too many rows or columns.
    """
    lines = lines_of(stream, LONGEST_ROW)
    with RowStore() as sets:
        is_told = False
        for item in _rows(lines, source, ("jurisdiction",) if jurisdiction else ()):
            if isinstance(item, Problem):
                is_told = is_told or item.skipped
                yield item
            else:
                if jurisdiction and not item.get("jurisdiction"):
                    item["jurisdiction"] = jurisdiction
                sets.add(_set_id(item), item)
                if sets.count > MOST_ROWS:
                    raise SourceError(f"it has more than {MOST_ROWS:,} rows; split it")
        if lines.has_windows:
            yield note("not UTF-8", source, detail="read as Windows-1252")
        if not (sets.count or is_told):
            yield lost("table without rows", source, records=0)
        for set_id in sets:
            yield from _read_set(set_id, sets, source)


def _rows(
    lines: Iterable[str], source: str, given: Collection[str]
) -> Iterator[dict[str, str] | Problem]:
    names: list[str] = []
    for line, cells, damage in read_rows(lines, _count_known):
        where = f"line {line}"
        if damage:
            yield (note if cells else lost)("damaged row", source, where, damage)
        if not cells:
            continue
        if names:
            yield from _row(names, cells, source, where)
            continue
        if len(cells) > MOST_COLUMNS:
            raise SourceError(f"it has more than {MOST_COLUMNS:,} columns; take out what is none")
        names, problems = read_header(cells, source, where, given)
        yield from problems
        if "text" not in names:
            detail = f"the columns are {', '.join(filter(None, names))[:200]}{advice_on(cells)}"
            yield lost("no column named text", source, where, detail, 0)
            return


def _count_known(cells: Sequence[str]) -> int:
    return sum(column_name(cell) in COLUMNS for cell in cells)


def _row(
    names: Sequence[str], cells: Sequence[str], source: str, where: str
) -> Iterator[dict[str, str] | Problem]:
    found = {name: clean(cell) for name, cell in zip(names, cells, strict=False) if name}
    if code := found.get("code") or found.get("id"):
        where = f"{where} ({code[:80]})"
    else:
        yield lost("neither id nor code", source, where)
        return
    if any(cell.strip() for cell in cells[len(names) :]):
        detail = f"{len(cells):,} cells for {len(names):,} columns"
        yield lost("more cells than columns", source, where, detail)
        return
    if (order := found.get("order")) and not _NUMBER.fullmatch(order):
        detail = f"order is {order[:80]!r}; the place in the file counts"
        yield note("not a number", source, where, detail)
    found[""] = where
    yield found


def _set_id(row: Row) -> str:
    get = row.get
    return get("set_id") or _named_set(get("jurisdiction"), get("subject"), get("set_title"))


@lru_cache(1_024)
def _named_set(*names: str | None) -> str:
    return _slug("-".join(filter(None, names))) or "unnamed"


@lru_cache(1_024)
def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.casefold()).strip("-")


def _read_set(set_id: str, sets: RowStore, source: str) -> Iterator[StandardRecord | Problem]:
    ids: dict[str, str] = {}
    for row in sets.rows(set_id):
        if (code := row.get("code")) and code not in ids:
            ids[code] = _id(set_id, row)
    nodes: list[Node] = []
    for row in sets.rows(set_id):
        made = _node(set_id, row, ids, len(nodes))
        nodes.append(made)
        if unknown := [level for level in made.levels if level not in GRADES]:
            detail = ", ".join(unknown)[:200]
            yield note("unknown education level", source, row[""], detail)
    yield from build_tree(nodes, lambda _: {"standard_set_id": set_id}, source)


def _id(set_id: str, row: Row) -> str:
    """Return a row's id, or one that is the same whenever the same set is read again."""
    if row.get("id"):
        return row["id"]
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{set_id}\n{row['code']}").hex.upper()


def _node(set_id: str, row: Row, ids: Mapping[str, str], position: int) -> Node:
    parent, order, grades = row.get("parent", ""), row.get("order", ""), row.get("grades", "")
    return Node(
        id=row.get("id") or ids[row["code"]],
        description=row.get("text", ""),
        notation=row.get("code", ""),
        parents=(ids.get(parent, parent),) if parent else (),
        order=float(order) if _NUMBER.fullmatch(order) else position,
        levels=_levels(grades) if grades else (),
        fields=_fields(set_id, tuple(each for each in row.items() if each[0] not in _OWN)),
        where=row[""],
    )


@lru_cache(1_024)
def _levels(grades: str) -> tuple[str, ...]:
    return normalize_levels([grades])


@lru_cache(1_024)
def _fields(set_id: str, cells: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
    """Return the fields of a record that many rows have in common."""
    row = dict(cells)
    codes = row.get("other_codes", "").split("|")
    jurisdiction = row.get("jurisdiction") or "Unspecified"
    extra: dict[str, Any] = {name: value for name, value in cells if name not in COLUMNS}
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


def _set_title(set_id: str, row: Row) -> str:
    """Return a title for a set without one: its id where somebody wrote that as a name."""
    if row.get("set_id") and not guid_of(set_id):
        return set_id
    names = (row.get("document"), row.get("subject"), row.get("jurisdiction"))
    return next(filter(None, names), set_id)
