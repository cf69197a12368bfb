"""Choose the reader of each document."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from .files import UNREADABLE, Document
from .formats.case import is_case, read_case
from .formats.crosswalk import is_crosswalk, read_crosswalk
from .formats.csp import is_csp, read_csp
from .formats.jsonl import LONGEST_LINE, is_records, read_jsonl, read_records
from .formats.tabular import read_table
from .formats.values import Lines, decode, parse_json
from .report import Item, Problem, SourceError, lost

Format: TypeAlias = Literal["auto", "csp", "case", "jsonl", "csv", "crosswalk"]
LARGEST_JSON: Final = 2**27
"""Most bytes of one JSON document; it is read into memory as a whole."""
MOST_VALUES: Final = 10_000_000
"""Most values of one JSON document, approximately."""
_LINE_SUFFIXES: Final = (".jsonl", ".ndjson")
_FOREIGN: Final = (
    (b"<", "this is a web page or XML; open the address in a browser to see its text"),
    (b"%PDF", "this is a PDF; put its standards into a table, see `standards-mcp data template`"),
    (b"\xd0\xcf\x11\xe0", "this is a spreadsheet or document; save it as CSV"),
)
_TABLE_SUFFIXES: Final = (".csv", ".tsv", ".tab", ".txt")


def read_documents(
    documents: Iterable[Document | Problem], format_: Format = "auto", jurisdiction: str = ""
) -> Iterator[Iterator[Item]]:
    """Yield for each document an iterator over its items, to be used up before the next one.

    Args:
        format_: The format of all documents; ``auto`` detects it for each.
        jurisdiction: The jurisdiction of table rows that name none.
    """
    for document in documents:
        if isinstance(document, Problem):
            yield iter([document])
        else:
            yield _read_document(document, format_, jurisdiction)


def _read_document(document: Document, format_: Format, jurisdiction: str) -> Iterator[Item]:
    """Yield the items of a document, or a problem if it cannot be read."""
    try:
        head = document.head()
        foreign = next((hint for mark, hint in _FOREIGN if head.lstrip().startswith(mark)), "")
        if foreign or not head.strip():
            reason = "no standards" if foreign else "empty file"
            yield lost(reason, document.name, detail=foreign, records=0)
        else:
            yield from _read_as(document, decode(head).lstrip(), format_, jurisdiction)
    except (SourceError, *UNREADABLE) as error:
        detail = str(error) or "it ends too early; fetch it again"
        yield lost("cannot be read", document.name, detail=detail, records=0)


def _read_as(document: Document, text: str, format_: Format, jurisdiction: str) -> Iterator[Item]:
    """Yield the items of a document that begins with *text*."""
    is_auto, stream, name = format_ == "auto", document.stream, document.name
    kind = _detect_kind(name, text) if is_auto else format_
    if kind == "crosswalk" or (is_auto and kind == "csv" and is_crosswalk(text)):
        yield from read_crosswalk(stream, name)
    elif kind == "csv":
        yield from read_table(stream, name, jurisdiction)
    elif kind == "jsonl" and (is_auto or _has_lines(text)):
        yield from read_jsonl(Lines(stream, LONGEST_LINE), name)
    else:
        yield from _read_json(parse_json(_read_all(document)), kind, name)


def _read_json(value: object, kind: str, name: str) -> Iterator[Item]:
    if kind == "case" or (kind == "json" and is_case(value)):
        yield from read_case(value, name, time.strftime("%Y-%m-%d"))
    elif kind == "jsonl" or (kind == "json" and is_records(value)):
        yield from read_records(value, name)
    elif kind == "csp" or is_csp(value) or value == {"data": {}}:
        yield from read_csp(value, name)
    else:
        detail = "neither a standard set, a CASE package nor records"
        yield lost("unknown format", name, detail=detail, records=0)


def _detect_kind(name: str, start: str) -> str:
    """Return csv, jsonl, or json for a document that is one JSON value."""
    name = name.casefold().removesuffix(".gz")
    if name.endswith(_LINE_SUFFIXES):
        return "jsonl"
    is_json = start.startswith(("{", "[")) or name.endswith(".json")
    if name.endswith(_TABLE_SUFFIXES) or not is_json:
        return "csv"
    return "jsonl" if _has_lines(start) else "json"


def _has_lines(start: str) -> bool:
    """Return True if the first line is a JSON object, and another object begins after it."""
    first, newline, rest = start.partition("\n")
    if not newline or not rest.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _read_all(document: Document) -> bytes:
    data = document.stream.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON:
        raise SourceError(f"it is larger than {LARGEST_JSON:,} bytes; split it, or use JSONL")
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:  # each takes up 64 bytes or more
        raise SourceError(f"it has more than {MOST_VALUES:,} values; split it, or use JSONL")
    return data
