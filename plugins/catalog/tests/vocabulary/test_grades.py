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

UNDERGRADUATE = ("Undergraduate-UpperDivision", "Undergraduate-LowerDivision")
MIDDLE = ("06", "07", "08")
HIGH = ("09", "10", "11", "12")


THIRD = ("03",)
TO_FIFTH = ("03", "04", "05")
PRIMARY = ("K", "01", "02")
UNDERSTOOD = {
    THIRD: [
        "3", "03", "3rd", "3rd-grade", "third grade", "Grade 3", "GRADE 03", "grade three", "Gr.3",
        "G3", "grades: 3", "3rd graders", "level 3", "  3  ", '"03"', '["03"]', "(3)", "\uff13",
    ],
    ("K",): ["K", "k", "KG", "kindergarten", "Kindergarten grade", "grade-k", "kindergartners"],
    ("Pre-K",): ["Pre-K", "prek", "pre k", "PK", "TK", "preschool", "pre\u2011kindergarten"],
    TO_FIFTH: [
        "3-5", "03 - 05", "3\u20135", "3rd-5th", "5-3", "3-4-5", "3-4, 5", "grades 3 to 5",
        "3rd thru 5th grade", "grade 3 - grade 5", "3, 4 and 5", "3 4 5", "3/4/5", "5; 3 & 4",
        "3 or 4 or 5", "third to fifth", "['03', '04', '05']", "3,,4,5,", "upper elementary",
    ],
    PRIMARY: ["K-2", "kindergarten through second grade", "primary grades", "lower elementary"],
    ("Pre-K", *PRIMARY): ["PK-2", "pre-k-2", "P-2", "TK-2"],
    ("01", "02"): ["G1-G2"],
    SCHOOL_GRADES: ["P-12"],
    SCHOOL_GRADES[1:]: ["K-12", "k12"],
    (*PRIMARY, *TO_FIFTH): ["elementary", "Elementary School"],
    MIDDLE: ["middle school"],
    ("07", "08"): ["junior high"],
    HIGH: ["09-12", "grades-09-10-11-12", "high school", "High-School", "HS"],
    (*MIDDLE, *HIGH): ["middle to high school"],
    ("K", *HIGH): ["K and high school"],
    ("09",): ["freshman"],
    ("10",): ["sophomores"],
    ("11", "12"): ["juniors and seniors"],
    ("HigherEducation",): ["higher education"],
    UNDERGRADUATE: ["undergraduate"],
    ("HigherEducation", *UNDERGRADUATE): ["college"],
    ("ProfessionalEducation-Development",): ["professional development"],
    ("12", "AdultEducation"): ["12, adult education"],
} | {(level,): [level] for level in GRADES[-3:]}  # fmt: skip


@pytest.mark.parametrize("levels", UNDERSTOOD, ids=",".join)
def test_grades_bands_and_lists_are_understood(levels):
    assert {text: parse_grades(text) for text in UNDERSTOOD[levels]} == dict.fromkeys(
        UNDERSTOOD[levels], levels
    )


@pytest.mark.parametrize(
    "text",
    ["", "  ", "[]", "Year 3", "0", "13", "-3", "3-", "3+", "K5", "3.5", "3 to and 5",
     "college to 3", "G", "all", "ages 8-9", "003", "grade", "\ud800", "x" * 10_000],
)  # fmt: skip
def test_anything_else_is_refused_in_few_words(text):
    with pytest.raises(UnknownGradeError) as caught:
        parse_grades(text)
    assert isinstance(caught.value, CatalogError | ValueError)
    assert len(str(caught.value)) < 500


def test_the_refusal_names_what_exists_and_what_is_near():
    with pytest.raises(UnknownGradeError) as caught:
        parse_grades("kindergarden")
    message = str(caught.value)
    assert caught.value.text == "kindergarden"
    assert "'kindergarden' is not a grade. Did you mean kindergarten" in message
    assert all(part in message for part in ("Pre-K", "1 to 12", "high school", "AdultEducation"))
    with pytest.raises(UnknownGradeError) as caught:
        parse_grades("hihg school or colege")
    assert {"high school", "college"} <= set(caught.value.nearest)


@pytest.mark.parametrize(
    ("raw", "levels"),
    [
        ([], ()),
        (["01,02"], ("01", "02")),
        (["12", "K", "01", "K"], ("K", "01", "12")),
        (["KG", "PK", "PR"], ("Pre-K", "K")),
        (["HS"], HIGH),
        (["09-12", "08"], ("08", *HIGH)),
        (["UG", " 02 ", "", "01,XX"], ("01", "02", "UG", "XX")),
        (["LifeLongLearning", "Graduate"], ("Graduate", "LifeLongLearning")),
    ],
)
def test_the_levels_of_dirty_data_are_put_in_order(raw, levels):
    assert normalize_levels(raw) == levels


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
