"""Resumes have one form, and code in them stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_career.resumes import normalise

TEXTS = st.text(st.sampled_from("a#`~ \t\r\n-\u00a0\u2028é"), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("##Skills \r\n\r\n\r\n\r\n- Kafka", "## Skills\n\n\n- Kafka"),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("a \t\nb  ", "a\nb"),
        ("a\n\n\nb", "a\n\n\nb"),
        ("a\n \n\t\n\n\nb\n", "a\n\n\nb\n"),
        ("a\n\n\n\n\n", "a\n\n\n"),
        ("a\n   ", "a"),
        ("", ""),
        ("\n", "\n"),
        ("#Title", "# Title"),
        ("##   Title", "## Title"),
        ("#\tTitle", "# Title"),
        ("#######Seven", "####### Seven"),
        ("#", "#"),
        ("####  ", "####"),
        ("  #indented", "  #indented"),
        ("text #tag", "text #tag"),
        ("```\n#!/bin/sh\n##x\n```\n#y", "```\n#!/bin/sh\n##x\n```\n# y"),
        ("~~~~\n#a\n~~~\n#b\n~~~~~\n#c", "~~~~\n#a\n~~~\n#b\n~~~~~\n# c"),
        ("```py\n#a\n```py\n#b\n```\n#c", "```py\n#a\n```py\n#b\n```\n# c"),
        ("``` a`b\n#c", "``` a`b\n# c"),
        ("```\n#never closed", "```\n#never closed"),
        ("    ```\n#a", "    ```\n# a"),
    ],
)
def test_each_rule_holds(text: str, expected: str):
    assert normalise(text) == expected


@given(TEXTS)
def test_what_is_normal_stays_as_it_is(text: str):
    once = normalise(text)
    assert normalise(once) == once
    assert once.endswith("\n") == text.replace("\r", "\n").endswith("\n")
    assert "\r" not in once
    assert "\n\n\n\n" not in once
