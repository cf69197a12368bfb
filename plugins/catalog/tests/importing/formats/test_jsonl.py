from __future__ import annotations

import json

import pytest

from standards_mcp_catalog.importing.formats.jsonl import is_records, read_jsonl, read_records
from standards_mcp_catalog.importing.report import Problem


def test_each_line_is_a_record_with_all_its_fields(starter):
    record = starter("A", own_field=["x", "y"], statement_notation="W.1")
    line = json.dumps(record.to_dict())
    assert list(read_jsonl([line, "\n", "  \r\n", line], "file")) == [record, record]


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b"7", b"{}", b"\xff\xfe\x00", b"nonsense",
        b'{"_id": ""}', b'{"_id": 5}', b"[" * 100_000, b'{"_id": "A", "content": "\\ud800"}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_told_with_its_number(line, starter):
    good = json.dumps(starter("A").to_dict())
    found = list(read_jsonl([good, line, good], "file"))
    problems = [each for each in found if isinstance(each, Problem)]
    assert [(each.where.partition(" (")[0], each.records) for each in problems] == [("line 2", 1)]
    assert len(found) == 3


def test_a_record_that_cannot_be_read_is_named_by_line_and_code(starter):
    wrong = starter("A", statement_notation="W.1").to_dict() | {"subject": 7}
    blank = starter("B").to_dict() | {"content": " ", "description": ""}
    found = list(read_jsonl([json.dumps(wrong), json.dumps(blank)], "file"))
    assert "line 1 (W.1): not a valid record" in str(found[0])
    assert str(found[1]) == "file: line 2 (B): no text"


def test_one_document_may_hold_a_list_of_records(starter):
    record = starter("A")
    for value in ([record.to_dict()], {"records": [record.to_dict()]}, record.to_dict()):
        assert is_records(value)
        assert list(read_records(value, "file")) == [record]
    assert not is_records([])
    assert not is_records({"standards": {}})


@pytest.mark.parametrize(
    ("content", "description"),
    [
        ("Depth 0 (W): Top", "Top"),
        ("Depth 0: Top\nDepth 1 (W.1): Below\nstill", "Below\nstill"),
        ("No path at all", "No path at all"),
    ],
)
def test_the_description_is_the_last_part_of_the_content(starter, content, description):
    assert starter("A", content=content).description == description


def test_what_would_steer_a_terminal_is_taken_out_and_line_ends_stay(starter):
    data = starter("A\u202e").to_dict() | {
        "content": "Depth 0: a\nDepth 1: \x1b[31mb", "own": ["\x9b", {"\x07k": "\u2066v"}],
    }  # fmt: skip
    (record,) = read_jsonl([json.dumps(data)], "file")
    assert record.to_dict()["content"] == "Depth 0: a\nDepth 1: [31mb"
    assert (record.id, record.to_dict()["own"]) == ("A", ["", {"k": "v"}])


def test_a_line_that_is_too_long_for_a_record_is_told(monkeypatch, starter):
    monkeypatch.setattr("standards_mcp_catalog.importing.formats.jsonl.LONGEST_LINE", 1_000)
    good = json.dumps(starter("A").to_dict())
    problem, record = read_jsonl(["x" * 1_001, good], "file")
    assert (problem.reason, problem.where, record.id) == ("line too long", "line 1", "A")
