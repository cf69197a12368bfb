"""Quotations of official texts beside codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_alignment.checking.quotations import find_quotation

OFFICIAL = (
    "Name a fraction as one part of a whole that is cut into equal parts, and write it with two "
    "numbers."
)


@pytest.mark.parametrize(
    ("passage", "is_after_code"),
    [
        (f": {OFFICIAL}", True),
        (f"\u201c{OFFICIAL.upper()}\u201d (", False),
        (f"Students will {OFFICIAL[0].lower()}{OFFICIAL[1:-1]} (", False),
        (f" - {OFFICIAL} Then the class goes home and reads a book.", True),
        (": Name a fraction as one part of a whole that is cut", True),
        (f"{OFFICIAL.replace(',', '')} This is standard ", False),
    ],
)
def test_the_official_wording_has_no_differences(passage: str, is_after_code: bool):
    quotation = find_quotation(OFFICIAL, passage, is_after_code=is_after_code)
    assert quotation is not None
    assert not quotation.diff


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        ("equal", "uneven", "[-equal-]{+uneven+}"),
        ("two", "2", "[-two-]{+2+}"),
        ("equal ", "", "[-equal-]"),
        ("is cut", "is not cut", "{+not+}"),
        ("Name", "Call", "[-Name-]{+Call+}"),
        ("two numbers.", "three numbers.", "[-two-]{+three+}"),
        ("two numbers.", "many words.", "[-two numbers-]{+many words+}"),
    ],
)
def test_a_changed_wording_has_a_word_diff(old: str, new: str, diff: str):
    for passage, is_after_code in (
        (f": {OFFICIAL.replace(old, new)}", True),
        (OFFICIAL.replace(old, new), False),
    ):
        quotation = find_quotation(OFFICIAL, passage, is_after_code=is_after_code)
        assert quotation is not None
        assert diff in quotation.diff


@pytest.mark.parametrize(
    "passage",
    [
        "",
        ": fractions",
        "Students fold paper strips into equal parts and talk about it (",
        "Name a friend, and write a letter with two numbers (",
        "one part of a whole",
    ],
)
def test_other_words_are_no_quotation(passage: str):
    assert find_quotation(OFFICIAL, passage, is_after_code=True) is None


@given(st.text(), st.text(), st.booleans())
def test_any_texts_can_be_compared(official: str, passage: str, is_after_code: bool):
    quotation = find_quotation(official, passage, is_after_code=is_after_code)
    assert quotation is None or 0 <= quotation.start < quotation.end <= len(passage)
