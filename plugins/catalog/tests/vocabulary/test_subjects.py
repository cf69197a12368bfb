from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog.vocabulary.subjects import match_subjects, nearest_subjects

steady = settings(derandomize=True, deadline=None, max_examples=100)

STATES = (
    "English Language Arts",
    "Social Studies",
    "Science",
    "Mathematics",
    "Arts",
    "Computer Science",
    "Reading, Writing and Communicating",
    "Comprehensive Health",
    "Drama and Theatre Arts",
    "Physical Education",
    "Dance",
    "Visual Arts",
    "Mixed",
    "21st Century Skills",
    "Foreign Language and Literature",
)
NATION = (
    "Common Core Mathematics",
    "Common Core English/Language Arts",
    "ELA-Literacy",
    "Algebra I",
    "Geometry",
    "US History",
    "Theater",
    "Technology",
    "Health and Physical Education",
    "World Languages",
    "English Language Development",
    "Career and Technical Education",
    "Financial Literacy",
)
ENGLISH = ("English Language Arts", "Reading, Writing and Communicating")
COMMON_CORE_ENGLISH = ("Common Core English/Language Arts", "ELA-Literacy")


@pytest.mark.parametrize(
    ("text", "among_states", "in_the_nation"),
    [
        ("math", ("Mathematics",), ("Common Core Mathematics", "Algebra I", "Geometry")),
        ("algebra", ("Mathematics",), ("Common Core Mathematics", "Algebra I")),
        ("common core math standards", ("Mathematics",), ("Common Core Mathematics",)),
        ("ela", ENGLISH, COMMON_CORE_ENGLISH),
        ("reading", ENGLISH, COMMON_CORE_ENGLISH),
        ("reading & writing", ENGLISH, COMMON_CORE_ENGLISH),
        ("biology", ("Science",), ()),
        ("social studies", ("Social Studies",), ("US History",)),
        ("civics", ("Social Studies",), ()),
        ("U.S. history", (), ("US History",)),
        ("coding", ("Computer Science",), ()),
        ("theater", ("Arts", "Drama and Theatre Arts"), ("Theater",)),
        ("music", ("Arts",), ()),
        ("P.E.", ("Physical Education",), ("Health and Physical Education",)),
        ("health", ("Comprehensive Health",), ("Health and Physical Education",)),
        ("spanish", ("Foreign Language and Literature",), ("World Languages",)),
        ("ELD", (), ("English Language Development",)),
        ("personal finance", (), ("Financial Literacy",)),
        ("skills", ("21st Century Skills",), ()),
    ],
)
def test_a_subject_is_known_by_its_everyday_name(text, among_states, in_the_nation):
    assert match_subjects(text, STATES) == among_states
    assert match_subjects(text, NATION)[: len(in_the_nation)] == in_the_nation
    assert bool(match_subjects(text, NATION)) == bool(in_the_nation)


@pytest.mark.parametrize(
    ("text", "available", "found"),
    [
        ("SCIENCE", STATES, ("Science",)),
        (" Science. ", STATES, ("Science",)),
        ("reading writing & communicating", STATES, (ENGLISH[1],)),
        ("math and science", STATES, ("Science", "Mathematics")),
        ("language", STATES, (STATES[0], STATES[-1])),
        ("langu", STATES, ()),
        ("state standards", ["State Standards"], ("State Standards",)),
        ("Common Core Mathematics", [*STATES, NATION[0]], ("Mathematics", NATION[0])),
        ("english & language arts", [*STATES, NATION[1]], (*ENGLISH, NATION[1])),
        ("ELA", [*STATES, NATION[1]], (*ENGLISH, NATION[1])),
    ],
)
def test_names_are_found_whole_and_the_same_name_alone(text, available, found):
    assert match_subjects(text, available) == found


@pytest.mark.parametrize(
    ("text", "available"),
    [
        ("science", "Computer Science"),
        ("arts", "English Language Arts"),
        ("english", "English Language Development"),
        ("english", "Foreign Language and Literature"),
        ("math", "Aftermath Studies"),
        ("history", "Civics"),
    ],
)
def test_a_word_that_two_subjects_share_does_not_mix_them(text, available):
    assert match_subjects(text, [available]) == ()


@pytest.mark.parametrize("text", ["", "   ", "the", "...", "basket weaving"])
def test_what_means_no_subject_matches_none(text):
    assert match_subjects(text, STATES) == ()
    assert nearest_subjects(text, STATES) == ()


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("mathemtics", "Mathematics"), ("scince", "Science"), ("world history", "Social Studies")],
)
def test_a_miss_suggests_the_nearest_subject(text, nearest):
    assert match_subjects(text, STATES) == ()
    assert nearest_subjects(text, STATES)[0] == nearest
    assert len(nearest_subjects(text, STATES, limit=1)) == 1


@steady
@given(st.sampled_from(STATES + NATION), st.permutations(STATES + NATION))
def test_every_subject_is_found_by_its_own_name(subject, available):
    assert subject in match_subjects(subject.upper(), available)


@steady
@given(st.text(), st.lists(st.text() | st.sampled_from(STATES)))
def test_only_what_is_available_is_ever_named(text, available):
    for found in (match_subjects(text, available), nearest_subjects(text, available)):
        assert set(found) <= set(available)
        assert len(found) == len(set(found))
