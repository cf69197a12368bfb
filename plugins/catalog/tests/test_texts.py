"""The texts of records: headings, passages, hashes and comparable forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.records import (
    ancestors_text,
    comparable,
    nearest_heading,
    passages,
    text_hash,
)

ROOT = "Depth 0: Reading\n"
CODED = "Depth 1 (111.5(b)(3)): Number\nand operations\n"
BARE = "Depth 2: Fractions\n"


@pytest.mark.parametrize(
    ("above", "heading"),
    [
        ("", None),
        (ROOT, ("", "Reading")),
        (ROOT + CODED, ("111.5(b)(3)", "Number and operations")),
        (ROOT + CODED + BARE, ("111.5(b)(3)", "Number and operations")),
        (ROOT + BARE, ("", "Fractions")),
        ("Depth 0: " + "long " * 100 + "\n", ("", " ".join(["long"] * 39) + " ...")),
    ],
)
def test_the_nearest_heading_with_a_code_counts_and_else_the_nearest(
    above: str, heading: tuple[str, str] | None
):
    assert nearest_heading(f"{above}Depth 3: Folds paper.", "Folds paper.") == heading
    assert nearest_heading(f"{above}Depth 3: Folds paper.", "") == heading


@given(st.text(), st.text())
def test_no_content_is_too_odd(content: str, description: str):
    found = nearest_heading(content, description)
    assert found is None or all(isinstance(each, str) for each in found)


def test_the_hash_of_a_text_is_the_same_everywhere():
    assert text_hash("Count to ten.") == "f8603040e13dbb19b1c38ee263aef8b0"
    assert text_hash("\ud800") == text_hash("?")


def test_ancestors_are_read_from_the_content():
    content = "Depth 0 (3.NF): Fractions\nDepth 1: Parts: of a whole\nDepth 2 (3.NF.1): Say it."
    record = {"content": content, "description": "Say it."}
    assert ancestors_text(record) == "Fractions\nParts: of a whole"


def test_texts_that_differ_in_marks_and_case_only_are_comparable():
    assert comparable("Add, “subtract”.") == comparable('add  "Subtract"')
    assert comparable("Add 1") != comparable("Add 2")


def test_a_long_text_is_read_in_the_beginnings_of_its_parts():
    first, second = "students compare fractions " * 20, "children read two poems aloud " * 20
    parts = passages(first + second)
    assert len(parts) == 2
    assert parts[0] == first[: len(parts[0])]
    assert "poems" in parts[1]
    assert max(map(len, parts)) <= 400
    assert passages("short") == ["short"]
    assert [len(part) for part in passages("x" * 8000)] == [400] * 4
