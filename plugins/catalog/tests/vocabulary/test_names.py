"""Names of jurisdictions and sets as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    fits_jurisdiction,
    folded,
    jurisdictions_meant,
    jurisdictions_named,
    names_of_place,
    place_named,
    proper_name,
    titles_with,
)

TITLES = (
    "Common Core State Standards",
    "Texas",
    "Virginia",
    "West Virginia",
    "Washington Office of Essential Learning",
    "New York",
)


MEANT = {
    "Texas": ["texas", " TX "],
    "Virginia": ["virginia", "VA", "Commonwealth of Virginia"],
    "West Virginia": ["W.V.", "WV"],
    "New York": ["The State of New York", "ny", "New"],
    "Washington Office of Essential Learning": ["wa"],
    "Common Core State Standards": ["Common Core", "ccss", "common-core state"],
    "": ["Comm", "C", "CA", "", "..."],
}


@pytest.mark.parametrize("title", MEANT)
def test_a_jurisdiction_is_meant_by_its_name_and_what_is_short_for_it(title: str):
    for text in MEANT[title]:
        assert jurisdictions_named(text, TITLES) == [title] * bool(title), text


def test_a_title_that_is_it_comes_before_those_that_it_begins():
    assert jurisdictions_named("texas", ["Texas Bridge", "Texas"]) == ["Texas"]
    assert jurisdictions_named("TX", ["Texas Bridge", "Texas"]) == ["Texas"]
    assert jurisdictions_named("TX", ["Texas Bridge", "TX"]) == ["TX"]
    assert jurisdictions_named("ND", ["New Designs", "North Dakota"]) == ["North Dakota"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Florida", "CPALMS"),
        ("Washington, D.C.", "District of Columbia"),
        ("dc", "Washington DC"),
        ("Common Core State Standards", "CCSS"),
        ("NGSS", "Next Generation Science Standards"),
        ("NCSS", "C3 Framework (NCSS)"),
        ("Illinois", "Illinois: Chicago Public Schools"),
        ("IL", "IL - Chicago"),
    ],
)
def test_a_place_is_meant_by_each_of_its_names(text: str, title: str):
    assert jurisdictions_named(text, [title, "Ohio"]) == [title]
    assert fits_jurisdiction(text, title)


def test_a_place_with_several_names_is_all_of_them_and_a_publisher_is_itself():
    titles = ["Florida", "CPALMS", "Georgia"]
    assert jurisdictions_meant("FL", titles) == ["Florida", "CPALMS"]
    assert jurisdictions_meant("CPALMS", titles) == ["CPALMS"]
    names = {"fl": "Florida", "CCSS": TITLES[0], "CPALMS": "CPALMS", " Elm  City ": "Elm City"}
    assert {text: proper_name(text) for text in names} == names
    assert names_of_place("Florida") == ["Florida", "FL", "CPALMS"]
    assert names_of_place("Elm") == []


def test_another_place_is_not_meant_by_a_word_of_its_name():
    assert jurisdictions_named("Washington", ["Washington, D.C."]) == []
    assert not fits_jurisdiction("Virginia", "West Virginia")
    assert not fits_jurisdiction("OR", "Florida")
    for text in ("KS", "Kansas", "State of Kansas"):
        assert jurisdictions_named(text, ["Kansas City Public Schools"]) == []
    assert jurisdictions_named("IN", ["In Focus Academy"]) == []
    assert jurisdictions_named("Kansas City", ["Kansas City Schools"]) == ["Kansas City Schools"]
    assert fits_jurisdiction("Chicago", "Illinois: Chicago Public Schools")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("New", "'New' may be 'New Jersey' or 'New York'. Name one of them in full."),
        ("Ohio", "No jurisdiction here is 'Ohio'. No standards of Ohio are loaded. There are: "),
        ("Folrida", "No jurisdiction here is 'Folrida'. Did you mean 'CPALMS'? There are: "),
    ],
)
def test_a_name_of_none_or_of_several_is_refused_with_what_there_is(text: str, told: str):
    with pytest.raises(JurisdictionNameError) as refused:
        jurisdictions_meant(text, ["New York", "New Jersey", "CPALMS"])
    assert str(refused.value).startswith(told)
    with pytest.raises(JurisdictionNameError, match="None is loaded"):
        jurisdictions_meant(text, [])


SETS = ("Mathematics: Grade 1", "Mathematics: Grade 11", "English: Grade 1", "English: Grades 9-10")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("math grade 1", ["Mathematics: Grade 1"]),
        ("GRADE 1", ["Mathematics: Grade 1", "English: Grade 1"]),
        ("english", ["English: Grade 1", "English: Grades 9-10"]),
        ("english 9", ["English: Grades 9-10"]),
        ("", []),
    ],
)
def test_a_title_has_the_words_of_a_text_and_numbers_whole(text: str, expected: list[str]):
    assert titles_with(text, SETS) == expected


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_is_too_odd_for_a_name(text: str, title: str):
    assert folded(folded(text)) == folded(text)
    assert place_named(proper_name(text)) == place_named(text)
    assert jurisdictions_named(text, [title]) in ([], [title])
    assert jurisdictions_named(title, [title]) == [title] or not folded(title)
    assert titles_with(text, [title]) in ([], [title])
