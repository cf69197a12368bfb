"""Crosswalks as tables: which tables are some, and what their rows state."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.importing.formats.crosswalk import is_crosswalk, read_crosswalk
from standards_mcp_catalog.importing.report import Problem, SourceError, Statement


def read(table: str | bytes, source: str = "folder/walk.csv") -> tuple[list[Any], list[Problem]]:
    data = table.encode() if isinstance(table, str) else table
    items = list(read_crosswalk(io.BytesIO(data), source))
    problems = [each for each in items if isinstance(each, Problem)]
    return [each for each in items if isinstance(each, Statement)], problems


def rows(table: str) -> list[tuple[str, str, str, str]]:
    statements, problems = read(table)
    assert not problems
    return [(each.start, each.relation, each.end, each.where) for each in statements]


@pytest.mark.parametrize(
    "table",
    [
        "from,to,relation\nA.1,B.1,exactMatchOf\n",
        "Relation;Source Code;Target Code\nexactMatchOf;A.1;B.1\n",
        "sep=;\nfrom;to;relation\nA.1;B.1;exactMatchOf\n",
        '"Origin Node URI","Destination Node URI","Association Type"\nA.1,B.1,exactMatchOf\n',
        "source id,source code,target id,target code,relationship\n,A.1,B.1,B.9,exactMatchOf\n",
        "\ufefffrom,to,relation\r\nA.1,B.1,exactMatchOf\r\n",
    ],
)
def test_columns_are_known_by_what_they_mean(table: str):
    assert is_crosswalk(table)
    assert [each[:3] for each in rows(table)] == [("A.1", "exactMatchOf", "B.1")]


@pytest.mark.parametrize(
    "table",
    [
        "",
        "code,text\nA.1,Count to ten.\n",
        "code,text,type,source,target\nA.1,Count to ten.,Standard,x,y\n",
    ],
)
def test_other_tables_are_none(table: str):
    assert not is_crosswalk(table)


def test_a_crosswalk_is_called_by_its_file():
    names = ["walk.csv", "/a/b/walk.csv.gz", "https://x.example/walk.csv?key=1", "a.zip/b/walk.csv"]
    names += ["a.zip:walk.csv", "a.zip:b.zip:c/walk.csv"]
    for name in names:
        (statement, *_), _ = read("from,to,relation\nA.1,B.1,same\n", name)
        assert statement.crosswalk == ("walk.csv", "walk.csv"), name


def test_what_lacks_a_column_says_which_columns_there_are():
    assert is_crosswalk("from,to\nA.1,B.1\n")
    statements, (problem,) = read("from,to\nA.1,B.1\n")
    assert not statements
    assert "the columns from, to and relation; these are from, to" in str(problem)


def test_a_crosswalk_without_rows_says_so():
    assert read("from,to,relation\n")[1][0].reason == "crosswalk without rows"
    assert read("")[1][0].reason == "crosswalk without rows"


@given(st.text(st.sampled_from('abA1.,;\t"\n\r\ufeff')) | st.text())
def test_any_text_is_read_or_told(table: str):
    is_crosswalk(table)
    with suppress(SourceError):  # a quotation mark is wrong
        for item in read_crosswalk(io.BytesIO(table.encode("utf-8", "replace")), "x"):
            assert isinstance(item, (Statement, Problem))
