"""Tables of standards, as spreadsheets save them: CSV, with commas, semicolons or tabs.

The first line names the columns. `COLUMNS` documents each of them, `template` shows them.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from standards_mcp.catalog.importing.problems import Problem, lost, note
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.vocabulary.grades import GRADES, normalize_levels

from .cells import read_rows
from .text import clean, decode
from .tree import Node, build_tree
from .values import present

COLUMNS: Final[Mapping[str, str]] = {
    "id": "any text that never changes; made from set and code when there is none",
    "code": "the code people use, such as 3.NF.A.1; required where there is no id",
    "text": "what the standard says; required",
    "parent": "the id or the code of the row above this one in the tree",
    "grades": "3, K-2, high school ...; empty: those of the parent",
    "subject": "Mathematics",
    "jurisdiction": "the state or organization",
    "set_title": "the name of the collection, such as Grade 3",
    "set_id": "made from jurisdiction, subject and set_title when there is none",
    "label": "Domain, Cluster, Standard ...",
    "other_codes": "more codes of the same standard, separated by |",
    "order": "a number; rows stand in the order of the file otherwise",
    "document": "the title of the published document",
    "edition": "its year or version",
    "license": "under which terms the text may be used",
    "rights_holder": "whose text it is",
    "source_url": "where the official text is",
}
_ALIASES: Final[Mapping[str, str]] = {
    "_id": "id", "guid": "id", "identifier": "id", "notation": "code", "statement_notation": "code",
    "humancodingscheme": "code", "description": "text", "statement": "text",
    "fullstatement": "text", "standard": "text",
    "parent_id": "parent", "grade": "grades", "grade_level": "grades",
    "education_levels": "grades", "educationlevel": "grades", "state": "jurisdiction",
    "set": "set_title", "standard_set_title": "set_title", "standard_set_id": "set_id",
    "statement_label": "label", "type": "label", "valid": "edition", "licence": "license",
    "url": "source_url", "sequence": "order", "alt_statement_notations": "other_codes",
    "alternate_codes": "other_codes",
}  # fmt: skip
_EXAMPLE: Final = (
    ("D1-M", "M", "Counting and comparing", "", "K-2", "Domain"),
    ("D1-M-1", "M.1", "Count up to 100 things in several ways.", "M", "1", "Standard"),
    ("D1-M-2", "M.2", "Say which of two groups has more.", "M", "1", "Standard"),
)
_MADE: Final = frozenset(
    {
        "content", "depth", "is_leaf", "is_root", "root_id", "ancestor_ids", "child_ids",
        "sibling_count",
    }
)  # fmt: skip
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


def read_table(data: bytes, source: str) -> Iterator[StandardRecord | Problem]:
    """Yield the records of a table, set by set.

    Args:
        data: The file; UTF-8 or UTF-16 with or without a byte order mark, or Windows-1252.
        source: The name of the document, for problems.
    """
    text, encoding = decode(data)
    if encoding == "windows-1252":
        yield note("not UTF-8", source, detail="read as Windows-1252")
    problems: list[Problem] = []
    sets: dict[str, list[dict[str, str]]] = {}
    for row in _rows(text, source, problems):
        sets.setdefault(_set_id(row), []).append(row)
    yield from problems
    if not (sets or any(problem.skipped for problem in problems)):
        yield lost("table without rows", source, records=0)
    for set_id, rows in sets.items():
        yield from _read_set(set_id, rows, source)


def _rows(text: str, source: str, problems: list[Problem]) -> Iterator[dict[str, str]]:
    names: list[str] = []
    for line, cells, damage in read_rows(text, _count_known):
        where = f"line {line}"
        if damage:
            found = note if cells else lost
            problems.append(found("damaged row", source, where, damage))
        if not cells:
            continue
        if names:
            if row := _row(names, cells, source, where, problems):
                yield row
            continue
        names = _header(cells, source, where, problems)
        if "text" not in names:
            detail = f"the columns are {', '.join(filter(None, names))[:200]}"
            problems.append(lost("no column named text", source, where, detail, 0))
            return


def _count_known(cells: Sequence[str]) -> int:
    return sum(_column(cell) in COLUMNS for cell in cells)


def _column(cell: str) -> str:
    name = _plain(cell)
    return _ALIASES.get(name, name)


def _plain(cell: str) -> str:
    return re.sub(r"\W+", "_", clean(cell).casefold().strip("\"' ")).strip("_")


def _header(cells: Sequence[str], source: str, where: str, problems: list[Problem]) -> list[str]:
    """Return the name of each column, "" for one that is not read."""
    names = [_column(cell) for cell in cells]
    for place, (cell, name) in enumerate(zip(cells, names, strict=True)):
        same = [number for number, other in enumerate(names) if other == name]
        exact = [number for number in same if _plain(cells[number]) == name]
        first = (exact or same)[0]
        if not name:
            continue
        if place != first:
            names[place] = ""
            detail = (
                f"column {place + 1} {clean(cell)[:80]!r}; column {first + 1} was read as {name}"
            )
            problems.append(note("column given twice", source, where, detail))
        elif name in _MADE:
            names[place] = ""
            problems.append(note("column not needed", source, where, f"{name!r} is made anew"))
        elif name not in COLUMNS:
            close = difflib.get_close_matches(name, COLUMNS, n=1)
            detail = f"{name!r}" + (f"; did you mean {close[0]!r}?" if close else "; kept as it is")
            problems.append(note("unknown column", source, where, detail))
    if missing := [name for name in ("subject", "jurisdiction") if name not in names]:
        detail = f"{' and '.join(missing)} will be 'Unspecified'"
        problems.append(note("column missing", source, where, detail))
    return names


def _row(
    names: Sequence[str], cells: Sequence[str], source: str, where: str, problems: list[Problem]
) -> dict[str, str] | None:
    found = {name: clean(cell) for name, cell in zip(names, cells, strict=False) if name}
    if code := found.get("code") or found.get("id"):
        where = f"{where} ({code[:80]})"
    else:
        problems.append(lost("neither id nor code", source, where))
        return None
    if any(cell.strip() for cell in cells[len(names) :]):
        detail = f"{len(cells)} cells for {len(names)} columns"
        problems.append(lost("more cells than columns", source, where, detail))
        return None
    if found.get("order") and not _NUMBER.fullmatch(found["order"]):
        detail = f"order is {found['order'][:80]!r}; the place in the file counts"
        problems.append(note("not a number", source, where, detail))
    return found | {"": where}


def _set_id(row: Mapping[str, str]) -> str:
    if row.get("set_id"):
        return row["set_id"]
    names = (row.get(name, "") for name in ("jurisdiction", "subject", "set_title"))
    slug = re.sub(r"\W+", "-", "-".join(filter(None, names)).casefold()).strip("-")
    return slug or "unnamed"


def _read_set(
    set_id: str, rows: Sequence[dict[str, str]], source: str
) -> Iterator[StandardRecord | Problem]:
    ids = {row["code"]: _id(set_id, row) for row in reversed(rows) if row.get("code")}
    problems: list[Problem] = []
    nodes = [_node(set_id, row, ids, position) for position, row in enumerate(rows)]
    for row, made in zip(rows, nodes, strict=True):
        if unknown := [level for level in made.levels if level not in GRADES]:
            detail = ", ".join(unknown)[:200]
            problems.append(note("unknown education level", source, row[""], detail))
    yield from problems
    yield from build_tree(nodes, lambda _: {"standard_set_id": set_id}, source)


def _id(set_id: str, row: Mapping[str, str]) -> str:
    """Return a row's id, or one that is the same whenever the same set is read again."""
    if row.get("id"):
        return row["id"]
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{set_id}\n{row['code']}").hex.upper()


def _node(set_id: str, row: Mapping[str, str], ids: Mapping[str, str], position: int) -> Node:
    parent, order = row.get("parent", ""), row.get("order", "")
    codes = row.get("other_codes", "").split("|")
    jurisdiction = row.get("jurisdiction") or "Unspecified"
    extra: dict[str, Any] = {
        name: value for name, value in row.items() if name and name not in COLUMNS
    }
    named = {
        "standard_set_title": row.get("set_title") or set_id,
        "subject": row.get("subject") or "Unspecified",
        "jurisdiction_id": re.sub(r"\W+", "-", jurisdiction.casefold()).strip("-") or "unknown",
        "jurisdiction_title": jurisdiction,
        "statement_label": row.get("label"),
        "alt_statement_notations": [each for each in map(str.strip, codes) if each],
        "document_title": row.get("document"),
        "document_valid": row.get("edition"),
        "license": row.get("license"),
        "rights_holder": row.get("rights_holder"),
        "source_url": row.get("source_url"),
    }
    return Node(
        id=_id(set_id, row),
        description=row.get("text", ""),
        notation=row.get("code", ""),
        parents=(ids.get(parent, parent),) if parent else (),
        order=float(order) if _NUMBER.fullmatch(order) else position,
        levels=normalize_levels([row["grades"]]) if row.get("grades") else (),
        fields=present(extra | named),
        where=row[""],
    )
