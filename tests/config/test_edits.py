"""Edits of a configuration file, as a mapping from text to text."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp.config.edits import (
    with_tool_disabled,
    with_tool_enabled,
    with_values,
)

_words = st.text("abcx", min_size=1, max_size=2)
_lists = st.lists(_words | st.just("web.*"), max_size=3)
_plugins = st.dictionaries(
    _words, st.fixed_dictionaries({}, optional={"enabled": st.booleans(), "n": st.integers()})
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file, its tables in any order, some inline and some dotted, with comments."""
    parts = []
    for key in ("enable", "disable"):
        if draw(st.booleans()):
            items = ", ".join(map(json.dumps, draw(_lists)))
            parts.append(f"{key} = [ {items} ] # {key}")
    tools = "\n".join(["[tools] # the tools", *parts]) if draw(st.booleans()) else ""
    tables = [tools, "[plugins.catalog]\nbackend = 'local' # here"]
    for name, keys in draw(_plugins).items():
        lines = [f"{key} = {json.dumps(value)} # {key}" for key, value in keys.items()]
        tables.append("\n".join([f"[plugins.{name}] # {name}", *lines]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    chosen = draw(st.permutations(tables))
    head = "# mine\nautoload = true # yes\n\n"
    return mark + (head + "\n".join(chosen) + "\n").replace("\n", end)


def read(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix("\ufeff"))


def meaning(text: str) -> dict[str, Any]:
    """Return what a file says; an empty list of what is disabled says as much as none."""
    values = read(text)
    if not values.get("tools", {}).get("disable", True):
        del values["tools"]["disable"]
    if not values.get("tools", True):
        del values["tools"]
    return values


def comments(text: str) -> list[str]:
    return sorted(line.partition("#")[2] for line in text.splitlines() if "#" in line)


@given(files(), _words, st.booleans())
def test_an_edit_changes_one_key_and_keeps_comments_and_line_ends(text: str, name: str, on: bool):
    edited = with_values(text, {("plugins", name, "enabled"): on})
    expected = read(text)
    expected.setdefault("plugins", {}).setdefault(name, {})["enabled"] = on
    assert read(edited) == expected

    pattern = name
    off = with_tool_disabled(text, pattern)
    expected = read(text)
    disable = expected.setdefault("tools", {}).setdefault("disable", [])
    disable += [] if pattern in disable else [pattern]
    assert read(off) == expected

    back = with_tool_enabled(text, pattern)
    expected = read(text)
    tools = expected.get("tools", {})
    if pattern in tools.get("disable", ()):
        tools["disable"] = [each for each in tools["disable"] if each != pattern]
    elif "enable" in tools and pattern not in tools["enable"] and "*" not in tools["enable"]:
        tools["enable"].append(pattern)
    assert meaning(back) == meaning(tomlkit.dumps(expected))
    if off != text:
        assert meaning(with_tool_enabled(off, pattern)) == meaning(text)
    for after in (edited, off, back):
        assert comments(after) == comments(text)
        assert after.startswith("\ufeff") == text.startswith("\ufeff")
        assert ("\r" in after) == ("\r" in text)
        assert after.replace("\r\n", "\n").count("\r") == 0
        assert after.count("\r") in (0, after.count("\n"))
