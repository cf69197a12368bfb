"""The sources of settings as layers, the names of keys in each, and their lines in a TOML file.

Layers stay separate after the merge, so that errors, ``config show --origin`` and the check for
exposed secrets can name the source of each value.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from standards_mcp._utils.text import printable

from .models.settings import ENV_PREFIX

ENVIRONMENT: Final = "environment"
DOT_ENV: Final = ".env"
_LONGEST: Final = 2000  # lines of one value
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of values, with its name for errors.

    Attributes:
        text: The text of a file, to find the lines of keys.
        folder: Relative paths start here.
        variables: The texts of the variables that set the values, by their names in capitals.
        others: The texts of variables without the host's prefix, by their names in capitals; the
            settings of plugins may name them.
        names: The own variables of plugins' keys that are set, by the paths of the keys.
    """

    name: str
    values: dict[str, Any] = field(repr=False)  # secrets may be among them
    text: str = field(default="", repr=False)
    folder: Path = Path()
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    others: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    names: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])

    def value(self, path: Iterable[str | int]) -> Any:
        """Return the value at *path*; for an element of a list, the list.

        Raises:
            KeyError: The key is not set.
        """
        value: Any = self.values
        for key in map(str, path):
            if isinstance(value, list) and key.isdigit():
                break
            if not isinstance(value, Mapping):
                raise KeyError(key)
            value = cast("Mapping[str, Any]", value)[key]
        return cast("Any", value)

    def sets(self, path: Iterable[str | int]) -> bool:
        """Return True if the key at *path* is set here."""
        with suppress(KeyError):
            self.value(path)
            return True
        return False

    def sets_value(self, path: tuple[str | int, ...]) -> bool:
        """Return True if *path* has a plain value here; other layers may add to a table."""
        return self.sets(path) and not isinstance(self.value(path), Mapping)

    def location(self, path: Iterable[str | int]) -> str:
        """Return the name; for a file, with the line of the key at *path*."""
        line = line_of(self.text, tuple(map(str, path))) if self.text else None
        return self.name if line is None else f"{self.name}:{line}"

    @property
    def has_variables(self) -> bool:
        """True if the values come from variables; only these may hold secrets."""
        return self.name in (ENVIRONMENT, DOT_ENV)

    def where(self, path: Iterable[str | int]) -> str:
        """Return the location of the key at *path*, and the key's name there."""
        keys = tuple(path)
        variable = self.names.get(tuple(map(str, keys))) or variable_name(keys)
        name = variable if self.has_variables else key_name(keys)
        return f"{self.location(keys)}: {name}"


@dataclass(frozen=True, slots=True)
class Layers:
    """All sources, the highest first."""

    ordered: tuple[Layer, ...] = ()

    def merged(self) -> dict[str, Any]:
        """Return the values in force, table by table."""
        values: dict[str, Any] = {}
        for layer in reversed(self.ordered):
            values = merged(values, layer.values)
        return values

    def source(self, path: Iterable[str | int]) -> Layer | None:
        """Return the highest layer that sets the key at *path*, or None."""
        keys = tuple(path)
        return next((layer for layer in self.ordered if layer.sets(keys)), None)

    def origin(self, path: Iterable[str | int]) -> str:
        """Return the location of the key at *path* in its highest layer, or an empty string."""
        keys = tuple(path)
        layer = self.source(keys)
        return layer.location(keys) if layer else ""

    def where(self, path: Iterable[str | int]) -> str:
        """Return the source in which to correct the key at *path*, and the key's name there."""
        keys = tuple(path)
        # The highest plain value is in force. A table is merged from all layers that have it. A
        # missing key is best added to the rest of its table: the lowest layer with the table is
        # the file, where most users write.
        layers = [layer for layer in self.ordered if layer.sets_value(keys)][:1]
        layers = layers or [layer for layer in self.ordered if layer.sets(keys)]
        for depth in range(len(keys) - 1, 1, -1):
            layers = layers or [layer for layer in self.ordered if layer.sets(keys[:depth])][-1:]
        return " and ".join(layer.where(keys) for layer in reversed(layers)) or key_name(keys)

    def variables(self) -> dict[str, str]:
        """Return the texts of the variables whose values no higher layer replaces."""
        # From the lowest layer up: --set drops variables, too.
        in_force: dict[str, str] = {}
        for layer in reversed(self.ordered):
            kept = (item for item in in_force.items() if not layer.sets_value(path_of(item[0])))
            in_force = dict(kept) | dict(layer.variables)
        return in_force


def merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return *base* with the values of *over*, table by table.

    A table does not replace a plain value, so that validation reports that value.
    """
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if not isinstance(value, Mapping) or below is None:
            result[key] = value
        elif isinstance(below, dict):
            result[key] = merged(cast("dict[str, Any]", below), cast("Mapping[str, Any]", value))
    return result


def nested(path: Iterable[str], value: Any) -> Any:
    """Return *value* in a table for each key of *path*."""
    for key in reversed(tuple(path)):
        value = {key: value}
    return value


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with its path, the values of a table before its inner tables.

    A list counts as one value; an empty table yields nothing.
    """
    if not isinstance(value, Mapping):
        yield path, value
        return
    items = cast("Mapping[str, Any]", value).items()
    for key, inner in sorted(items, key=lambda item: isinstance(item[1], Mapping)):
        yield from leaves(inner, (*path, key))


def variable_name(path: Sequence[str | int]) -> str:
    """Return the environment variable that sets the key at *path*, in capitals."""
    keys, inside = _split(path)
    return ENV_PREFIX + "__".join(keys).upper() + inside


def set_variable(path: Sequence[str | int], own: str | None = None) -> str:
    """Return the advice for a secret that is missing, or that others can read.

    Args:
        own: The key's own variable, if a plugin declares one.
    """
    return f"set {own or variable_name(path)} in the environment or in .env"


def path_of(variable: str) -> tuple[str, ...]:
    """Return the path of the key that a variable sets; the reverse of `variable_name`."""
    return tuple(variable.removeprefix(ENV_PREFIX).lower().split("__"))


def key_name(path: Sequence[str | int]) -> str:
    """Return the key at *path* as a file spells it: its table, then its name."""
    (*tables, key), inside = _split(path)
    table = ".".join(map(toml_key, tables))
    return (f"[{table}] " if table else "") + toml_key(key) + inside


def _split(path: Sequence[str | int]) -> tuple[tuple[str, ...], str]:
    """Split *path* at a list: the keys, and the element of the list in words."""
    count = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    inside = [f"element {part + 1}" if isinstance(part, int) else part for part in path[count:]]
    return tuple(map(str, path[:count])), "".join(f", {part}" for part in inside)


def line_of(text: str, path: Sequence[str]) -> int | None:
    """Return the line, from 1, of the key at *path*, or of the nearest table around it."""
    best, found = 0, None
    for line, keys in _statements(text):
        shared = min(len(keys), len(path))
        if shared > best and keys[:shared] == tuple(path[:shared]):
            best, found = shared, line
    return found


def _statements(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the first line of each header and each key, with its whole path."""
    lines, index = text.split("\n"), 0
    table: tuple[str, ...] = ()
    while index < len(lines):
        start, data = index, None
        index += 1
        if not lines[start].strip():
            continue
        # A value may have many lines: it ends as soon as the text so far is valid TOML.
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


def toml_key(key: str) -> str:
    """Return *key*, in quotes if TOML requires them."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: object) -> str:
    """Return JSON data as TOML on one line, without nulls, which TOML does not have."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        pairs = [f"{toml_key(k)} = {toml_value(item)}" for k, item in items if item is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        elements = cast("Sequence[object]", value)
        return f"[{', '.join(toml_value(item) for item in elements if item is not None)}]"
    if isinstance(value, str):
        # JSON and TOML escape the same characters, except for a few, which `printable` escapes.
        return printable(json.dumps(value, ensure_ascii=False))
    return str(value).lower()  # booleans are lowercase; TOML writes numbers as Python does
