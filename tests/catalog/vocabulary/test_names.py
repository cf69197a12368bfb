"""Names of jurisdictions and sets as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp.catalog.vocabulary.names import folded, jurisdictions_named, titles_with

TITLES = (
    "Common Core State Standards",
    "Texas",
    "Virginia",
    "West Virginia",
    "Washington Essential Academic Learning",
    "New York",
)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("texas", "Texas"),
        (" TX ", "Texas"),
        ("tx", "Texas"),
        ("VA", "Virginia"),
        ("W.V.", ""),
        ("WV", "West Virginia"),
        ("virginia", "Virginia"),
        ("wa", "Washington Essential Academic Learning"),
        ("ny", "New York"),
        ("New", "New York"),
        ("Common Core", "Common Core State Standards"),
        ("ccss", "Common Core State Standards"),
        ("common-core state", "Common Core State Standards"),
        ("Comm", ""),
        ("C", ""),
        ("CA", ""),
        ("", ""),
        ("...", ""),
    ],
)
def test_a_jurisdiction_is_meant_by_its_name_and_what_is_short_for_it(text: str, title: str):
    assert jurisdictions_named(text, TITLES) == ([title] if title else [])


def test_a_title_that_is_it_comes_before_those_that_it_begins():
    assert jurisdictions_named("texas", ["Texas Bridge", "Texas"]) == ["Texas"]
    assert jurisdictions_named("TX", ["Texas Bridge", "Texas"]) == ["Texas"]
    assert jurisdictions_named("TX", ["Texas Bridge", "TX"]) == ["TX"]
    assert jurisdictions_named("ND", ["New Designs", "North Dakota"]) == ["North Dakota"]


SETS = ("Mathematics: Grade 1", "Mathematics: Grade 11", "English: Grade 1", "English: Grades 9-10")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("math grade 1", ["Mathematics: Grade 1"]),
        ("GRADE 1", ["Mathematics: Grade 1", "English: Grade 1"]),
        ("english", ["English: Grade 1", "English: Grades 9-10"]),
        ("english 9", ["English: Grades 9-10"]),
        ("science", []),
        ("", []),
        ("---", []),
    ],
)
def test_a_title_has_the_words_of_a_text_and_numbers_whole(text: str, expected: list[str]):
    assert titles_with(text, SETS) == expected


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_is_too_odd_for_a_name(text: str, title: str):
    assert folded(folded(text)) == folded(text)
    assert jurisdictions_named(text, [title]) in ([], [title])
    assert jurisdictions_named(title, [title]) == [title] or not folded(title)
    assert titles_with(text, [title]) in ([], [title])
