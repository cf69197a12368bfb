"""Arguments in the forms in which models send them."""

from __future__ import annotations

import pytest

from standards_mcp_catalog.arguments import as_list, as_text


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("3", "3"),
        (3, "3"),
        ([3, "4", ["K"]], "3, 4, K"),
        ([], ""),
        (None, None),
        (True, True),
        ([3, None], ["3", None]),
        (4.5, 4.5),
    ],
)
def test_numbers_and_lists_become_texts_and_other_values_stay(sent: object, text: object):
    assert as_text(sent) == text
    assert type(as_text(sent)) is type(text)


@pytest.mark.parametrize(("sent", "entries"), [("RL.3", ["RL.3"]), (["RL.3"], ["RL.3"]), (3, 3)])
def test_a_single_text_becomes_a_list(sent: object, entries: object):
    assert as_list(sent) == entries
