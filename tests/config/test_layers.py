"""Finding the line of a key in a TOML file."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp.config.layers import line_of

keys = st.text(st.characters(codec="utf-8", exclude_characters="="), min_size=1, max_size=4)
values = st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=3))


@given(st.dictionaries(keys, st.dictionaries(keys, values, min_size=1, max_size=3), max_size=3))
def test_every_key_of_any_file_is_found_where_it_is_written(tables: dict[str, dict[str, Any]]):
    text = tomlkit.dumps(tables)
    lines = text.split("\n")
    for table, entries in tables.items():
        for key in entries:
            found = line_of(text, [table, key])
            assert found is not None
            statement = lines[found - 1].partition("=")[0]
            assert list(tomllib.loads(f"{statement}= 0")) == [key]
