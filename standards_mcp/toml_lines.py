"""Finds the line of a TOML file that a key stands on, which `tomllib` does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

_LONGEST = 2000  # lines of one value


def line_of(text: str, path: Sequence[str]) -> int | None:
    """Return the line, from 1, of the key at *path*, or of the nearest table around it."""
    best, found = 0, None
    for line, keys in _statements(text):
        common = _common(keys, path)
        if common > best and common in (len(keys), len(path)):
            best, found = common, line
    return found


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


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
    """Return the keys that lead into a statement's value; those of an inline table count too."""
    keys: list[str] = []
    value: Any = data
    while True:
        if isinstance(value, list) and value:  # [[table]]
            value = cast("Any", value)[0]
        if not isinstance(value, dict) or len(cast("dict[str, Any]", value)) != 1:
            return tuple(keys)
        key, value = next(iter(cast("dict[str, Any]", value).items()))
        keys.append(key)
