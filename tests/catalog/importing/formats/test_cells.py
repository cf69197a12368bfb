from __future__ import annotations

import pytest

from standards_mcp.catalog.importing.formats.cells import LONGEST_ROW, read_rows


def rows(text: str) -> list[tuple[int, list[str], bool]]:
    found = read_rows(text.splitlines(keepends=True), len)
    return [(row.line, list(row.cells), bool(row.damage)) for row in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ['x"y,"z\n', 'x","\n', 'A,"open\n', 'A,"open "" more\n', '"\n', '"""\n', '",\n']
)
def test_wrong_quotation_marks_in_every_line_cost_time_in_proportion(line):
    # In proportion to the square, this would take hours.
    found = rows("code,text\n" + line * 100_000)
    assert found[0][1] == ["code", "text"]
    assert len(found) <= 100_001


def test_a_region_of_wrong_marks_before_one_that_closes_is_read_once():
    found = rows("code,text\n" + 'x","\n' * 50_000 + '",x"y\n' + 'A,"two\nlines"\n')
    assert found[-1][1] == ["A", "two\nlines"]


@pytest.mark.slow
def test_a_quotation_that_is_longer_than_any_row_damages_only_its_own_line():
    found = rows('code,text\nA,"open\n' + "B,b\n" * (LONGEST_ROW // 4 + 10))
    assert found[1] == (2, ["A", "open"], True)
    assert {tuple(row[1]) for row in found[2:]} == {("B", "b")}


def test_a_row_that_is_too_long_is_told():
    found = rows("code,text\nA," + "," * LONGEST_ROW + "\nB,b\n")
    assert found[1:] == [(2, [], True), (3, ["B", "b"], False)]
