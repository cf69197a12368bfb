from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from standards_mcp.catalog.importing.formats.decoding import decode, encoding_of, lines_of
from standards_mcp.catalog.importing.problems import Problem, SourceError
from standards_mcp.catalog.importing.readers import read_documents
from standards_mcp.catalog.importing.sources.files import open_sources
from standards_mcp.catalog.records import StandardRecord

TABLE = "code,text\nA1,Count beads\nA2,Share beads — fairly\n"
UNREAD = {
    "utf-32": "UTF-32", "utf-32-le": "UTF-32", "utf-32-be": "UTF-32",
    "utf-16-le": "UTF-16 without a byte order mark",
    "utf-16-be": "UTF-16 without a byte order mark",
    "utf-7": "UTF-7", "cp037": "EBCDIC", "cp500": "EBCDIC", "cp1140": "EBCDIC",
}  # fmt: skip


def read(path: Path) -> list[StandardRecord | Problem]:
    return [item for document in read_documents(open_sources([path])) for item in document]


@pytest.mark.parametrize("encoding", UNREAD)
@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "txt", "dat"])
def test_an_encoding_that_is_not_read_is_refused_by_name(tmp_path, starter, encoding, ending):
    record = json.dumps(starter("Z", description="Share — fairly").to_dict(), ensure_ascii=False)
    text = {"json": f"[{record}]", "jsonl": f"{record}\n{record}\n"}.get(ending, TABLE)
    path = tmp_path / f"x.{ending}"
    path.write_bytes(text.encode(encoding, "replace"))
    (problem,) = read(path)
    expected = f"it is in {UNREAD[encoding]}, which is not read; save it as UTF-8"
    assert isinstance(problem, Problem)
    assert problem.detail == expected


@pytest.mark.parametrize("ending", ["json", "jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_records_are_read_in_every_encoding_that_tables_are(tmp_path, starter, encoding, ending):
    records = [starter(id_, description="Share — fairly") for id_ in "YZ"]
    lines = [json.dumps(record.to_dict(), ensure_ascii=False) for record in records]
    text = "\n".join(lines) if ending == "jsonl" else f"[{','.join(lines)}]"
    path = tmp_path / f"x.{ending}"
    path.write_bytes(text.encode(encoding))
    assert read(path) == records


@pytest.mark.parametrize(
    "text",
    ["cat+dog, 3+4=7, C++, (+) +1 a+b-c", "日本語,文字\n", "é,è\n", "a+BCD-", "x\n", "", "+"],
)
def test_other_texts_are_not_taken_for_them(text):
    assert encoding_of(text.encode()) == "utf-8-sig"
    assert decode(text.encode()) == text


def test_lines_end_as_every_system_ends_them_and_only_the_odd_one_is_windows():
    lines = lines_of(io.BytesIO("a—\rb\r\nc\n".encode() + "d—\n".encode("cp1252")), 100)
    assert list(lines) == ["a—\r", "b\r\n", "c\n", "d—\n"]
    assert lines.has_windows


def test_of_a_line_that_is_too_long_the_rest_is_passed_over():
    lines = lines_of(io.BytesIO(b"a\n" + b"x" * 100_000 + b"\nb\n"), 10)
    assert list(lines) == ["a\n", "x" * 11, "b\n"]


def test_the_message_of_a_refusal_says_what_to_do():
    with pytest.raises(SourceError, match="save it as UTF-8"):
        decode(TABLE.encode("utf-32"))
