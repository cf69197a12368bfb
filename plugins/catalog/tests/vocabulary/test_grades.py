from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog import CatalogError
from standards_mcp_catalog.vocabulary.grades import (
    GRADES,
    SCHOOL_GRADES,
    UnknownGradeError,
    grade_order,
    normalize_levels,
    parse_grades,
)

steady = settings(derandomize=True, deadline=None, max_examples=100)

ELEMENTARY = ("K", "01", "02", "03", "04", "05")
MIDDLE = ("06", "07", "08")
HIGH = ("09", "10", "11", "12")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "3",
            "03",
            "3rd",
            "3rd grade",
            "3rd-grade",
            "third grade",
            "third",
            "Grade 3",
            "GRADE 03",
        ),
        *(
            "grade three",
            "Gr. 3",
            "gr3",
            "Gr.3",
            "G3",
            "grade-03",
            "grades: 3",
            "3rd graders",
            "level 3",
        ),
        *("  3  ", "3.", '"03"', '["03"]', "(3)", "\uff13", "3\u200b"),
    ],
)
def test_one_grade_is_understood(text):
    assert parse_grades(text) == ("03",)


@pytest.mark.parametrize("text", ["K", "k", "KG", "kindergarten", "Kindergarten grade", "grade-k"])
def test_kindergarten_is_understood(text):
    assert parse_grades(text) == ("K",)


@pytest.mark.parametrize(
    "text",
    ["Pre-K", "pre-k", "prek", "pre k", "PK", "TK", "preschool", "Pre-Kindergarten", "pre\u2011k"],
)
def test_the_time_before_kindergarten_is_understood(text):
    assert parse_grades(text) == ("Pre-K",)


@pytest.mark.parametrize(
    "text",
    [
        *("3-5", "03-05", "3 - 5", "3\u20135", "3\u20145", "3rd-5th", "5-3", "3-4-5", "3-4, 5"),
        *("grades 3 to 5", "3 through 5", "3rd thru 5th grade", "Grades 3-5", "grade 3 - grade 5"),
        *("3, 4 and 5", "3,4,5", "3 4 5", "3/4/5", "5; 3 & 4", "3 or 4 or 5", "third to fifth"),
        *('["03","04","05"]', "['03', '04', '05']", "3,,4,5,", "4, 3-5"),
    ],
)
def test_ranges_and_lists_are_understood(text):
    assert parse_grades(text) == ("03", "04", "05")


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("K-2", ("K", "01", "02")),
        ("PK-2", ("Pre-K", "K", "01", "02")),
        ("pre-k-2", ("Pre-K", "K", "01", "02")),
        ("kindergarten through second grade", ("K", "01", "02")),
        ("P-2", ("Pre-K", "K", "01", "02")),
        ("TK-2", ("Pre-K", "K", "01", "02")),
        ("G1-G2", ("01", "02")),
        ("primary", ("K", "01", "02")),
        ("primary grades", ("K", "01", "02")),
        ("P-12", SCHOOL_GRADES),
        ("K-12", SCHOOL_GRADES[1:]),
        ("k12", SCHOOL_GRADES[1:]),
        ("09-12", HIGH),
        ("grades-09-10-11-12", HIGH),
        ("elementary", ELEMENTARY),
        ("Elementary School", ELEMENTARY),
        ("middle school", MIDDLE),
        ("junior high", ("07", "08")),
        ("high school", HIGH),
        ("High-School", HIGH),
        ("HS", HIGH),
        ("middle to high school", (*MIDDLE, *HIGH)),
        ("K and high school", ("K", *HIGH)),
    ],
)
def test_bands_are_understood(text, levels):
    assert parse_grades(text) == levels


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (
            "college",
            ("HigherEducation", "Undergraduate-UpperDivision", "Undergraduate-LowerDivision"),
        ),
        ("higher education", ("HigherEducation",)),
        ("undergraduate", ("Undergraduate-UpperDivision", "Undergraduate-LowerDivision")),
        ("professional development", ("ProfessionalEducation-Development",)),
        ("12, adult education", ("12", "AdultEducation")),
    ],
)
def test_levels_beyond_school_are_understood(text, levels):
    assert parse_grades(text) == levels


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "[]", "Year 3", "0", "13", "grade 13", "-3", "3-", "3+", "3--", "K5", "3.5"),
        *("3 to and 5", "college to 3", "adult - college", "G", "all", "ages 8-9", "003"),
        *("3; DROP TABLE", "grade", "\ud800", "x" * 10_000),
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(UnknownGradeError):
        parse_grades(text)


def test_the_refusal_names_what_exists_and_what_is_near():
    with pytest.raises(UnknownGradeError) as caught:
        parse_grades("kindergarden")
    message = str(caught.value)
    assert caught.value.text == "kindergarden"
    assert caught.value.nearest[0] == "kindergarten"
    assert "'kindergarden' is not a grade. Did you mean kindergarten" in message
    assert all(part in message for part in ("Pre-K", "1 to 12", "high school", "AdultEducation"))


def test_the_refusal_finds_the_misspelt_word():
    with pytest.raises(UnknownGradeError) as caught:
        parse_grades("hihg school or colege")
    assert {"high school", "college"} <= set(caught.value.nearest)


def test_the_refusal_is_short_and_both_a_value_error_and_the_catalogs():
    with pytest.raises(ValueError, match="is not a grade") as caught:
        parse_grades("x" * 10_000)
    assert isinstance(caught.value, CatalogError)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("raw", "levels"),
    [
        ([], ()),
        (["03"], ("03",)),
        (["01,02"], ("01", "02")),
        (["12", "K", "01", "K"], ("K", "01", "12")),
        (["KG", "PK", "PR"], ("Pre-K", "K")),
        (["HS"], HIGH),
        (["09-12", "08"], ("08", *HIGH)),
        (["11.12"], ("11", "12")),
        (["3"], ("03",)),
        (["UG", " 02 ", "", "01,XX"], ("01", "02", "UG", "XX")),
        (["Year 3, England"], ("Year 3, England",)),
        (["LifeLongLearning", "Graduate"], ("Graduate", "LifeLongLearning")),
    ],
)
def test_the_levels_of_dirty_data_are_put_in_order(raw, levels):
    assert normalize_levels(raw) == levels


def test_every_level_is_its_own_name():
    assert [parse_grades(level) for level in GRADES] == [(level,) for level in GRADES]


def test_unknown_levels_come_last():
    assert sorted(["UG", "AdultEducation", "K"], key=grade_order) == ["K", "AdultEducation", "UG"]


@steady
@given(st.lists(st.sampled_from(GRADES), min_size=1), st.sampled_from([", ", " and ", ";", "\n"]))
def test_a_list_of_levels_is_read_back(levels, separator):
    expected = tuple(level for level in GRADES if level in levels)
    assert parse_grades(separator.join(levels)) == expected
    assert parse_grades(str(levels)) == expected
    assert normalize_levels(levels) == normalize_levels(iter([",".join(levels)])) == expected


@steady
@given(st.sampled_from(SCHOOL_GRADES), st.sampled_from(SCHOOL_GRADES))
def test_a_range_of_school_grades_is_read_back(left, right):
    first, last = sorted((left, right), key=grade_order)
    expected = SCHOOL_GRADES[grade_order(first) : grade_order(last) + 1]
    assert parse_grades(f"{left}-{right}") == parse_grades(f"{right} to {left}") == expected


@steady
@given(st.text() | st.text("0123456789 kKgr-,.to", max_size=12))
def test_any_text_gives_known_levels_or_the_refusal(text):
    try:
        levels = parse_grades(text)
    except UnknownGradeError:
        return
    assert levels
    assert levels == tuple(level for level in GRADES if level in levels)


@steady
@given(st.lists(st.text() | st.sampled_from([*GRADES, "HS", "01,02", "UG"])))
def test_normalized_levels_stay_as_they_are(raw):
    levels = normalize_levels(raw)
    assert normalize_levels(levels) == levels
    assert len(set(levels)) == len(levels)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("freshman", ("09",)),
        ("sophomores", ("10",)),
        ("juniors and seniors", ("11", "12")),
        ("junior high", ("07", "08")),
        ("kindergartners", ("K",)),
        ("lower elementary", ("K", "01", "02")),
        ("upper elementary", ("03", "04", "05")),
    ],
)
def test_names_of_school_years_are_understood(text, levels):
    assert parse_grades(text) == levels
