from __future__ import annotations

import io

import pytest
from support.records import read_and_told

from standards_mcp_catalog.importing.formats.tables import LONGEST_ROW
from standards_mcp_catalog.importing.formats.tabular import COLUMNS, read_table, template
from standards_mcp_catalog.importing.report import Problem, SourceError
from standards_mcp_catalog.records import StandardRecord

HEADER = "code,text,parent,grades,subject,jurisdiction,set_title\n"


def read(data: str | bytes) -> tuple[dict[str | None, StandardRecord], list[Problem]]:
    raw = data.encode() if isinstance(data, str) else data
    records, problems = read_and_told(read_table(io.BytesIO(raw), "file.csv"))
    told = [each for each in problems if each.reason != "column missing"]
    return {record.statement_notation: record for record in records}, told


def test_the_template_reads_back_without_a_problem_and_shows_every_column():
    records, problems = read(template())
    assert problems == []
    assert list(records) == ["M", "M.1", "M.2"]
    assert template().splitlines()[0].split(",") == list(COLUMNS)
    assert records["M.1"].parent_id == records["M"].id
    assert records["M.1"].content.startswith("Depth 0 (M): Counting and comparing\nDepth 1 (M.1): ")


@pytest.mark.parametrize("parent", ["W", "first"])
def test_a_parent_is_named_by_code_or_by_id_and_gives_its_grades(parent):
    table = f"id,code,text,parent,grades\nfirst,W,Top,,K-2\nsecond,W.1,Below,{parent},\n"
    record = read(table)[0]["W.1"]
    assert (record.ancestor_ids, record.education_levels) == (("first",), ("K", "01", "02"))


def test_rows_without_an_id_get_the_same_one_each_time():
    table = HEADER + "W.1,Share beads.,,3,Math,Willow,Grade 3\n"
    first, second = read(table)[0]["W.1"], read(table)[0]["W.1"]
    assert first.id == second.id
    assert first.id != read(table.replace("Willow", "Elm"))[0]["W.1"].id


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("encoding", "told"),
    [("utf-8", []), ("utf-8-sig", []), ("utf-16", []), ("cp1252", ["not UTF-8"])],
)
def test_every_way_in_which_spreadsheets_save_is_read(delimiter, encoding, told):
    for newline in ("\n", "\r\n"):
        table = delimiter.join(("Code", " TEXT ", "Grades")) + newline
        table += delimiter.join(("W.1", '"Say ""½""; then, go on"', "3")) + newline
        table += delimiter.join(("W.2", 'a 5" ruler', "4")) + newline
        records, problems = read(table.encode(encoding))
        assert [problem.reason for problem in problems] == told
        assert records["W.1"].description == 'Say "½"; then, go on'
        assert records["W.1"].education_levels == ("03",)
        assert records["W.2"].description == 'a 5" ruler'


def test_names_of_columns_that_other_systems_use_are_understood():
    records, problems = read("notation,description,grade_level,State\nW,Top,4,Willow\n")
    (told,) = problems
    assert str(told) == (
        "file.csv: line 1: column read by its meaning ('notation' as code, 'description' as text, "
        "'grade_level' as grades, 'State' as jurisdiction)"
    )
    assert records["W"].education_levels == ("04",)
    assert records["W"].jurisdiction_title == "Willow"


@pytest.mark.parametrize(
    "header",
    [
        "Standard Code,Standard Description,Grade Band",
        "Benchmark Number,Benchmark,Grade Level",
        "humanCodingScheme,fullStatement,educationLevel",
        "Indicator ID,Performance Expectation,Grade Range",
    ],
)
def test_columns_are_read_by_the_meaning_of_their_names(header):
    records, problems = read(f"{header}\nW.1,Share beads.,3\n")
    assert records["W.1"].description == "Share beads."
    assert records["W.1"].education_levels == ("03",)
    assert {problem.reason for problem in problems} <= {"column read by its meaning"}


def test_an_unknown_column_is_kept_and_the_nearest_name_suggested():
    records, problems = read("code,text,gardes,room\nW,Top,3,12\n")
    assert records["W"].to_dict()["room"] == "12"
    assert "did you mean 'grades'" in str(problems[0])
    assert [problem.reason for problem in problems] == ["unknown column"] * 2


def test_more_codes_an_order_and_a_source_are_kept():
    table = (
        "code,text,other_codes,order,source_url,license,edition\nW,Top,A|B,2,https://w,CC,2031\n"
    )
    record = read(table + "V,First,,1,,,\n")[0]
    assert list(record) == ["V", "W"]
    assert record["W"].alt_statement_notations == ("A", "B")
    assert (record["W"].license, record["W"].document_valid) == ("CC", "2031")


def test_what_cannot_be_a_record_is_skipped_with_its_line():
    table = "code,text\nW,Top,extra\n\n,no code\nV,\nX,fine\n"
    records, problems = read(table)
    assert set(records) == {"X"}
    assert {problem.reason: problem.where for problem in problems if problem.skipped} == {
        "more cells than columns": "line 2 (W)",
        "neither id nor code": "line 4",
        "no text": "line 5 (V)",
    }


def test_what_is_put_right_is_told_with_its_line_and_code():
    table = "code,text,parent,grades,order\nA,,,,\nB,b,A,,\nC,c,none,,\nD,d,E,,\nE,e,D,,\n"
    records, problems = read(table + "F,f,,wizard,last\n")
    assert list(records) == ["A", "B", "C", "D", "E", "F"]
    assert {problem.reason: problem.where for problem in problems} == {
        "not a number": "line 7 (F)",
        "unknown education level": "line 7 (F)",
        "unknown parent": "line 4 (C)",
        "cycle broken": "line 5 (D)",
        "heading without text": "line 2 (A)",
    }
    assert not any(problem.skipped for problem in problems)


@pytest.mark.parametrize(
    "header", ["code,text,text", "code,text,description", "code,statement,text"]
)
def test_of_two_columns_of_one_meaning_the_rightly_named_one_is_read_and_the_other_told(header):
    records, problems = read(f"{header}\nW,one,two\n")
    assert records["W"].description == ("two" if header.endswith("statement,text") else "one")
    reasons = {problem.reason for problem in problems}
    assert reasons - {"column read by its meaning"} == {"column given twice"}


def test_columns_that_the_tree_makes_are_told_and_not_read():
    records, problems = read("code,text,content,depth\nW,Top,x,7\n")
    assert (records["W"].content, records["W"].depth) == ("Depth 0 (W): Top", 0)
    assert [problem.reason for problem in problems] == ["column not needed"] * 2


def test_columns_that_are_missing_are_told():
    (note, _) = read_table(io.BytesIO(b"code,text,subject\nW,Top,Art\n"), "file.csv")
    assert str(note) == "file.csv: line 1: column missing (jurisdiction will be 'Unspecified')"


def test_the_line_that_names_the_delimiter_for_a_spreadsheet_is_no_header():
    records, problems = read("sep=;\ncode;text\nW;One, two\n")
    assert (records["W"].description, problems) == ("One, two", [])


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ('W,"Top\n', "unexpected end of data"),
        ('W,"Say "half" of it"\n', "',' expected after '\"'"),
        ('W,"' + "x,\n" * 100_000, "field larger than field limit (131072)"),
        ("W" + "," * LONGEST_ROW + "\n", "row with more than 1,048,576 characters"),
    ],
)
def test_a_damaged_row_is_an_error_that_names_its_line_and_nothing_is_read(row, cause):
    with pytest.raises(SourceError) as caught:
        read(f'code,text\n\nX,"two\nlines"\n{row}U,last\n')
    assert str(caught.value) == (
        f"line 5: {cause}; close each quotation mark of this row, and double those inside a cell"
    )


@pytest.mark.parametrize(
    "data", [b"", b"code,text\n", b"code,name\nW,x\n", b"\xff\xfe", b"\x01\x02"]
)
def test_a_file_that_is_no_table_is_told(data):
    records, problems = read(data)
    assert records == {}
    assert any(problem.skipped for problem in problems)


def test_twice_the_same_code_is_told():
    records, problems = read("code,text\nW,One\nW,Two\n")
    assert records["W"].description == "One"
    assert [str(problem) for problem in problems] == [
        "file.csv: line 3 (W): id occurs twice in one set (the first was read, line 2 (W))"
    ]


@pytest.mark.parametrize(("most", "what"), [("MOST_ROWS", "rows"), ("MOST_COLUMNS", "columns")])
def test_a_table_beyond_all_bounds_is_refused(monkeypatch, most, what):
    monkeypatch.setattr(f"standards_mcp_catalog.importing.formats.tables.{most}", 2)
    with pytest.raises(SourceError, match=f"it has more than 2 {what}"):
        read("code,text,subject\n" + "W,Top,Art\nV,More,Art\nU,Last,Art\n")


def test_the_rows_of_many_sets_come_back_whole_however_they_are_mixed():
    lines = [f"W.{n},Text {n},,3,Math,Willow,Set {n % 3}\n" for n in range(500)]
    records, problems = read(HEADER + "".join(lines))
    assert problems == []
    assert [records[f"W.{n}"].description for n in range(500)] == [f"Text {n}" for n in range(500)]
    third = [each for each in records.values() if each.standard_set_id == "willow-math-set-2"]
    assert [each.statement_notation for each in third] == [f"W.{n}" for n in range(2, 500, 3)]
    assert {each.standard_set_title for each in third} == {"Set 2"}


def test_what_would_steer_a_terminal_or_turn_a_line_is_taken_out():
    records, _ = read("code,text\nA\u202e1,\x1b]0;title\x07red\x9b31m \u2066here &#8238;end\n")
    assert records["A1"].description == "]0;titlered31m here end"
