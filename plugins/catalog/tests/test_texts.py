"""What a standard without a code is called by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.texts import nearest_heading

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
