"""Editing JSON with comments in place."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_clients.jsonc import JsoncError, loads, remove_value, set_value

SETTINGS = """\
{
  // what I use
  "servers": {
    "mine": {"command": "x"}, // the first
    "yours": {} // the "second"
  },
  "list": [1, 2,], /* the end */
}
"""

scalars = st.none() | st.booleans() | st.integers() | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
tables = st.dictionaries(st.text(), values, max_size=4)
keys = st.lists(st.text(), min_size=1, max_size=3)
spaces = st.sampled_from(["", " ", "\n", "\r\n\t", '/* a {[,:" */', "// b }]\n"])


@st.composite
def spelled(draw: st.DrawFn, value: Any) -> str:
    """Spell a value with comments, odd space and trailing commas anywhere."""

    def space() -> str:
        return draw(spaces)

    def items(texts: list[str]) -> str:
        comma = space() + "," if texts and draw(st.booleans()) else ""
        return ",".join(space() + text for text in texts) + comma + space()

    def spell(inner: Any) -> str:
        if isinstance(inner, dict):
            return (
                "{"
                + items(
                    [json.dumps(k) + space() + ":" + space() + spell(v) for k, v in inner.items()]
                )
                + "}"
            )
        if isinstance(inner, list):
            return "[" + items([spell(each) for each in inner]) + "]"
        return json.dumps(inner)

    return space() + spell(value) + space()


spelled_tables = tables.flatmap(lambda table: st.tuples(st.just(table), spelled(table)))


def with_value(table: Any, path: list[str], value: Any) -> Any:
    """Do to a plain object what an edit does to its text."""
    head, *rest = path
    inner = with_value(table.get(head) or {}, rest, value) if rest else value
    return {**table, head: inner}


def fits(table: Any, path: list[str]) -> bool:
    """Tell whether only objects stand on the way to the last key."""
    for key in path[:-1]:
        table = table.get(key)
        if table is None:
            return True
        if not isinstance(table, dict):
            return False
    return True


@given(spelled_tables)
def test_reads_what_json_says_beside_comments_and_trailing_commas(case: tuple[Any, str]):
    table, text = case
    assert loads(text) == table


@given(spelled_tables, keys, values)
def test_a_value_is_set_and_nothing_else_changes(case: tuple[Any, str], path: list[str], new: Any):
    table, text = case
    if not fits(table, path):
        with pytest.raises(JsoncError, match="is not an object"):
            set_value(text, path, new)
        return
    assert loads(set_value(text, path, new)) == with_value(table, path, new)


@given(spelled_tables, st.data())
def test_a_value_is_removed_and_nothing_else_changes(case: tuple[Any, str], data: st.DataObject):
    table, text = case
    key = data.draw(st.sampled_from(sorted(table)) if table else st.text())
    assert loads(remove_value(text, [key])) == {k: v for k, v in table.items() if k != key}


@given(st.text())
def test_any_text_is_read_or_refused_by_line(text: str):
    message = ""
    try:
        loads(text)
    except JsoncError as exc:
        message = str(exc)
    assert re.fullmatch(r"|line \d+, column \d+: [A-Z].+", message)


def test_comments_and_layout_stay():
    edited = set_value(SETTINGS, ["servers", "new"], {"command": "c"})
    assert edited == SETTINGS.replace(
        '"yours": {} // the "second"\n',
        '"yours": {}, // the "second"\n    "new": {\n      "command": "c"\n    }\n',
    )


def test_an_added_server_can_be_removed():
    edited = set_value(SETTINGS, ["servers", "new"], {"command": "c"})
    assert remove_value(edited, ["servers", "new"]) == SETTINGS


def test_new_lines_follow_the_file_in_indentation_and_line_ends():
    text = '{\r\n\t"a": {\r\n\t\t"b": 1\r\n\t}\r\n}\r\n'
    assert set_value(text, ["a", "c"], {"d": 2}) == (
        '{\r\n\t"a": {\r\n\t\t"b": 1,\r\n\t\t"c": {\r\n\t\t\t"d": 2\r\n\t\t}\r\n\t}\r\n}\r\n'
    )


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff", "// nothing yet"])
def test_an_empty_file_gets_an_object(text: str):
    edited = set_value(text, ["a", "b"], 1)
    assert edited.startswith(text.rstrip())
    assert loads(edited) == {"a": {"b": 1}}


def test_a_path_that_is_not_there_is_no_change_to_remove():
    assert remove_value(SETTINGS, ["servers", "other"]) == SETTINGS
    assert remove_value("", ["a"]) == ""


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1\n "b": 2}', "line 2, column 2"),
        ('{"a": .5}', "line 1, column 7"),
        ('{"a": 01}', "line 1, column 8"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a"}', "line 1, column 5"),
        ("{} {}", "line 1, column 4"),
        ("[,]", "line 1, column 2"),
        ('{"a": 1', "line 1, column 8"),
        ("{,}", "line 1, column 2"),
        ('{"a": 1,,}', "line 1, column"),
        ("/* open", "line 1, column 1"),
        ("/* " * 100_000, "line 1, column 1"),
        ('"\\' * 100_000, "line 1, column 1"),
    ],
)
def test_a_fault_is_named_by_its_place(text: str, where: str):
    with pytest.raises(JsoncError, match=where):
        loads(text)
