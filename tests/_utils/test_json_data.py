from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp._utils.text import json_copy

# `st.text()` without categories has half characters too.
TEXTS = st.text(st.characters())
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_copied_can_be_written_and_what_is_not_is_refused(value: Any):
    try:
        copy = json_copy(value)
    except ValueError:
        with pytest.raises((TypeError, ValueError)):
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    else:
        assert copy == value
        assert json.loads(json.dumps(copy, ensure_ascii=False).encode()) == value


def test_half_a_character_is_named():
    with pytest.raises(ValueError, match=r"half a character \('\\ud83d'\)"):
        json_copy({"a": "half \ud83d"})
