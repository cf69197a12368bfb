"""Which reader a document is for, and what comes out of it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias, get_args

from standards_mcp.catalog.records import StandardRecord

from .formats.case import is_case, read_case
from .formats.csp import is_csp, read_csp
from .formats.jsonl import is_records, read_jsonl, read_records
from .formats.tabular import read_table
from .formats.values import parse_json
from .problems import Problem, SourceError, lost
from .sources.files import UNREADABLE, Document

Format: TypeAlias = Literal["auto", "csp", "case", "jsonl", "csv"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
LARGEST_JSON: Final = 2**28
"""How many bytes of one JSON document or table are read into memory."""
_LONGEST_LINE: Final = 2**26
_LINES: Final = (".jsonl", ".ndjson")
_FOREIGN: Final = (
    (b"<", "this is a web page or XML; open the address in a browser to see what it says"),
    (b"%PDF", "this is a PDF; put its standards into a table, see `standards-mcp data template`"),
    (b"\xd0\xcf\x11\xe0", "this is a spreadsheet or document; save it as CSV"),
)
_TABLES: Final = (".csv", ".tsv", ".tab", ".txt")


def read_documents(
    documents: Iterable[Document | Problem], format_: Format = "auto", today: str | None = None
) -> Iterator[Iterator[StandardRecord | Problem]]:
    """Yield for each document an iterator over its records and problems, to be used up at once.

    Args:
        format_: How to read them; ``auto`` looks at each.
        today: The date that decides what is superseded, as ``2030-12-31``; by default today's.
    """
    for document in documents:
        yield read_document(document, format_, today)


def read_document(
    document: Document | Problem, format_: Format = "auto", today: str | None = None
) -> Iterator[StandardRecord | Problem]:
    """Yield the records of one document and every problem with it; it never raises."""
    if isinstance(document, Problem):
        yield document
        return
    try:
        yield from _read(document, format_, today or time.strftime("%Y-%m-%d"))
    except (SourceError, *UNREADABLE) as error:
        yield lost("cannot be read", document.name, detail=str(error), records=0)


def _read(document: Document, format_: Format, today: str) -> Iterator[StandardRecord | Problem]:
    head = document.head()
    foreign = next((what for mark, what in _FOREIGN if head.lstrip().startswith(mark)), "")
    if not head.strip():
        yield lost("empty file", document.name, records=0)
        return
    if foreign:
        yield lost("no standards", document.name, detail=foreign, records=0)
        return
    kind = _kind(document) if format_ == "auto" else format_
    if kind == "csv":
        yield from read_table(_whole(document), document.name)
    elif kind == "jsonl" and (format_ == "auto" or _has_lines(document)):
        yield from read_jsonl(_lines(document.stream), document.name)
    else:
        yield from _read_json(document, kind, today)


def _read_json(document: Document, kind: str, today: str) -> Iterator[StandardRecord | Problem]:
    value, problems = parse_json(_whole(document), document.name)
    yield from problems
    if kind == "case" or (kind == "json" and is_case(value)):
        yield from read_case(value, document.name, today)
    elif kind == "jsonl" or (kind == "json" and is_records(value)):
        yield from read_records(value, document.name)
    elif kind == "csp" or is_csp(value) or value == {"data": {}}:
        yield from read_csp(value, document.name)
    else:
        detail = "neither a standard set, a CASE package nor records"
        yield lost("unknown format", document.name, detail=detail, records=0)


def _kind(document: Document) -> str:
    """Return csv or jsonl, or json for whatever is one JSON document."""
    name, start = (
        document.name.casefold().removesuffix(".gz"),
        document.head().lstrip(b"\xef\xbb\xbf \t\r\n"),
    )
    if name.endswith(_LINES):
        return "jsonl"
    if name.endswith(_TABLES) or (start[:1] not in (b"{", b"[") and not name.endswith(".json")):
        return "csv"
    return "jsonl" if _has_lines(document) else "json"


def _has_lines(document: Document) -> bool:
    """Return whether the first line is a whole JSON object and a second one follows."""
    first, newline, rest = document.head().lstrip().partition(b"\n")
    if not newline or not rest.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _lines(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield the lines of *stream*; one that is too long to be a record comes without its end."""
    while line := stream.readline(_LONGEST_LINE):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(_LONGEST_LINE)
        yield line


def _whole(document: Document) -> bytes:
    data = document.stream.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON:
        raise SourceError(f"it is larger than {LARGEST_JSON:,} bytes; split it, or use JSONL")
    return data
