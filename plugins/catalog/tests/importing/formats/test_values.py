from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from standards_mcp_catalog.importing.files import open_sources
from standards_mcp_catalog.importing.formats.values import Lines
from standards_mcp_catalog.importing.readers import read_documents
from standards_mcp_catalog.importing.report import Problem
from standards_mcp_catalog.records import StandardRecord

TABLE = "code,text\nA1,Count beads\nA2,Share beads — fairly\n"
UNREAD = ["utf-32", "utf-16-le", "utf-16-be"]


def read(path: Path) -> list[StandardRecord | Problem]:
    return [item for document in read_documents(open_sources([path])) for item in document]


@pytest.mark.parametrize("encoding", UNREAD)
@pytest.mark.parametrize("ending", ["csv", "json", "jsonl"])
def test_an_encoding_that_is_not_read_is_refused(tmp_path, starter, encoding, ending):
    record = json.dumps(starter("Z", description="Share — fairly").to_dict(), ensure_ascii=False)
    text = {"json": f"[{record}]", "jsonl": f"{record}\n{record}\n"}.get(ending, TABLE)
    path = tmp_path / f"x.{ending}"
    path.write_bytes(text.encode(encoding))
    (problem,) = read(path)
    assert isinstance(problem, Problem)
    assert problem.detail == (
        "it is in UTF-32, in UTF-16 without a byte order mark, or not text; save it as UTF-8"
    )


@pytest.mark.parametrize("ending", ["json", "jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_records_are_read_in_every_encoding_that_tables_are(tmp_path, starter, encoding, ending):
    records = [starter(id_, description="Share — fairly") for id_ in "YZ"]
    lines = [json.dumps(record.to_dict(), ensure_ascii=False) for record in records]
    text = "\n".join(lines) if ending == "jsonl" else f"[{','.join(lines)}]"
    path = tmp_path / f"x.{ending}"
    path.write_bytes(text.encode(encoding))
    assert read(path) == records


def test_lines_end_as_every_system_ends_them_and_only_the_odd_one_is_windows():
    lines = Lines(io.BytesIO("a—\rb\r\nc\n".encode() + "d—\n".encode("cp1252")), 100)
    assert list(lines) == ["a—\r", "b\r\n", "c\n", "d—\n"]
    assert lines.has_windows
