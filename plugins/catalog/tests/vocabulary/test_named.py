"""The grade and the subject that a text names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES
from standards_mcp_catalog.vocabulary.named import read_named

MIDDLE, HIGH = ("06", "07", "08"), ("09", "10", "11", "12")


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("long division with remainders for 4th graders", ("04",)),
        ("Grade 5\nObjective: students compare fractions", ("05",)),
        ("counting bears, Grade K", ("K",)),
        ("Grade Level(s): 7", ("07",)),
        ("grades 3-5 science fair", ("03", "04", "05")),
        ("Grades K\u20132: shapes", ("K", "01", "02")),
        ("K-2 counting bears", ("K", "01", "02")),
        ("K-5 fractions", ("K", "01", "02", "03", "04", "05")),
        ("grades K-12: writing", ()),
        ("gr. 4 multiplication", ("04",)),
        ("fifth-grade students write letters", ("05",)),
        ("5th and 6th grade ratios", ("05", "06")),
        ("a 3rd grader and a 5th grader compare heights", ("03", "05")),
        ("kindergarteners sort shapes", ("K",)),
        ("kindergarten", ("K",)),
        ("pre-kindergarten songs", ("Pre-K",)),
        ("pre-K children clap", ("Pre-K",)),
        ("middle schoolers build bridges", MIDDLE),
        ("high school students model data", HIGH),
        ("high-school algebra", HIGH),
        ("poems in middle school", MIDDLE),
        ("12th-grade English class", ("12",)),
        ("grade 4, 2-digit multiplication", ("04",)),
        ("grade 3, 1/2 and 1/4 on a ruler", ("03",)),
        ("grade 1, 10 more or 10 less", ("01",)),
        ("4th grade students need help with long division", ("04",)),
        ("grade 5 project on ecosystems", ("05",)),
    ],
)
def test_a_grade_is_read_as_teachers_write_it(text: str, levels: tuple[str, ...]):
    assert read_named(text).levels == levels


@pytest.mark.parametrize(
    "text",
    [
        "grade a paper with a rubric",
        "students grade 5 papers of their peers",
        "grade 3 tests",
        "5th period warm-up about fractions",
        "the 1st step of a proof",
        "how to get from a C-grade to a B",
        "upgrade 3 devices",
        "a steep grade of 6 percent",
        "beyond third grade",
        "texts below grade 4",
        "a third grade reading level",
        "In grade 3, students learned that area is additive. They now find areas of rectangles",
        "a center that was introduced in kindergarten",
        "students use place value understanding from grade 2",
        "corresponding angles, which they learned in grade 7",
        "the second graded essay",
        "visit the high school gym and measure it",
        "an elementary particle",
        "a K-pop song",
        "kindergarten, grade 2, grade 4, grade 6, grade 8 and grade 10 compared",
        "grade 13",
        "write a letter to 2nd grade buddies",
        "students in grade 5 or higher",
        "vitamin K",
    ],
)
def test_other_senses_name_no_grade(text: str):
    assert read_named(text).levels == ()


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str):
    named = read_named(text)
    assert set(named.levels) <= set(SCHOOL_GRADES)
    assert bool(named.topic) == bool(text)


@pytest.mark.parametrize("words", ["grade 3 ", "k-", "3rd and ", "subject: ", "high school ", "  "])
def test_a_long_text_is_read_in_a_moment(words: str):
    assert len(read_named(words * 2_000).topic) <= len(words) * 2_000


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("a math lesson about sharing", "math"),
        ("Subject: Science. Topic: rocks", "science"),
        ("rocks and minerals for science, grade 4", "science"),
        ("social studies unit on maps", "social studies"),
        ("my computer science class codes a game", "computer science"),
        ("12th-grade English class", "english"),
        ("4th grade math long division", "math"),
        ("5th grade science: states of matter", "science"),
        ("PE", "PE"),
        ("phys ed for 4th graders", "phys ed"),
    ],
)
def test_a_subject_is_read_where_it_is_named_as_one(text: str, subject: str):
    assert read_named(text).subject == subject


@pytest.mark.parametrize(
    "text",
    [
        "students write science fiction",
        "do the math on a receipt",
        "a math lesson that is also a science lesson",
        "interest in science-based careers",
        "translate from English",
        "4th grade science fiction stories",
        "the art teacher shares 24 crayons among 6 students",
        "each music lesson costs $15, write an equation",
        "symmetry in art",
        "argument writing in science",
        "3rd grade math and reading night",
    ],
)
def test_other_uses_name_no_subject(text: str):
    assert read_named(text).subject == ""


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("long division 4th grade", "long division"),
        ("fractions for my 3rd graders", "fractions"),
        ("3rd-grade students compare numbers", "compare numbers"),
        ("Grade 5\nObjective: students compare fractions", "Objective: students compare fractions"),
        ("5th grade science: states of matter", "states of matter"),
        ("rocks and minerals for science, grade 4", "rocks and minerals"),
        ("a math lesson about sharing", "sharing"),
        ("partition rectangles (2nd grade)", "partition rectangles"),
        ("kindergarten", "kindergarten"),
        ("7th grade unit rates", "unit rates"),
        ("4th grade standard algorithm", "standard algorithm"),
        ("a poem about the third graded road", "a poem about the third graded road"),
    ],
)
def test_the_topic_is_the_rest_of_the_text(text: str, topic: str):
    assert read_named(text).topic == topic


def test_words_that_are_not_read_stay_in_the_topic():
    text = "a science lesson for 4th graders"
    assert read_named(text, reads_grade=False, reads_subject=False).topic == text
    assert read_named(text, reads_grade=False).topic == "for 4th graders"


@pytest.mark.parametrize(
    ("text", "publisher", "topic"),
    [
        ("TEKS for 4th grade fractions", "Texas", "fractions"),
        ("Virginia SOL on poetry", "Virginia", "poetry"),
        ("Texas math standards on ratios", "Texas", "ratios"),
        ("NGSS standards about weather", "Next Generation Science Standards", "weather"),
        ("standards of New York for poetry", "New York", "poetry"),
        ("West Virginia standards about maps", "West Virginia", "maps"),
        ("NY standards for fractions", "New York", "fractions"),
        ("NYS Next Generation standards on ratios", "New York", "ratios"),
        ("B.E.S.T. standards for fractions", "Florida", "fractions"),
        ("BEST standards on area", "Florida", "area"),
        ("the best standards game", "", "the best standards game"),
        ("Ohio 4th grade fractions", "Ohio", "fractions"),
        ("fractions 5th grade, Texas", "Texas", "fractions"),
        ("4th grade Texas history", "", "Texas history"),
        ("maps of Texas", "", "maps of Texas"),
        ("the history of Texas", "", "the history of Texas"),
        ("compare Georgia and New York standards of living", "", None),
        ("living standards in Georgia", "", None),
        ("Georgia Standards of Excellence fractions", "Georgia", "fractions"),
        ("Ohio and Texas standards and standards of Iowa", "", None),
    ],
)
def test_a_publisher_is_read_where_its_standards_are_named(
    text: str, publisher: str, topic: str | None
):
    named = read_named(text)
    assert named.publisher == publisher
    assert named.topic == (topic or text)
