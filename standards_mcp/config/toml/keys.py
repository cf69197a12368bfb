"""Finds the line of a key in a TOML file, and writes keys and values as TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from standards_mcp._utils.text import printable

_LONGEST = 2000  # lines of one value


def line_of(text: str, path: Sequence[str]) -> int | None:
    """Return the line, from 1, of the key at *path*, or of the nearest table around it."""
    best, found = 0, None
    for line, keys in _statements(text):
        shared = min(len(keys), len(path))
        if shared > best and keys[:shared] == tuple(path[:shared]):
            best, found = shared, line
    return found


def _statements(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield where each header and each key begins, with its whole path."""
    lines, index = text.split("\n"), 0
    table: tuple[str, ...] = ()
    while index < len(lines):
        start, data = index, None
        index += 1
        if not lines[start].strip():
            continue
        # A value may run over many lines: it ends where the text so far is TOML.
        for end in range(start + 1, min(len(lines), start + _LONGEST) + 1):
            if (data := _parsed("\n".join(lines[start:end]))) is not None:
                index = end
                break
        keys = _path(data or {})
        if lines[start].lstrip().startswith("["):
            table = keys
            yield start + 1, table
        elif keys:
            yield start + 1, (*table, *keys)


def _parsed(statement: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(statement)
    except (ValueError, RecursionError):
        return None


def _path(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that lead into a statement's value, also through inline tables."""
    keys: list[str] = []
    value: Any = data
    while True:
        if isinstance(value, list) and value:  # [[table]]
            value = cast("Any", value)[0]
        if not isinstance(value, dict) or len(cast("dict[str, Any]", value)) != 1:
            return tuple(keys)
        key, value = next(iter(cast("dict[str, Any]", value).items()))
        keys.append(key)


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """Return *key*, quoted where TOML needs that."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: object) -> str:
    """Return JSON data as TOML on one line; a null, which TOML does not know, is left out."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        pairs = [f"{toml_key(k)} = {toml_value(each)}" for k, each in items if each is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        elements = cast("Sequence[object]", value)
        return f"[{', '.join(toml_value(each) for each in elements if each is not None)}]"
    if isinstance(value, str):
        # JSON escapes what TOML does, but for a few characters.
        return printable(json.dumps(value, ensure_ascii=False))
    return str(value).lower()  # True as true; numbers are spelt as in Python, infinite ones too
