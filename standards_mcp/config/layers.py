"""The sources of settings, one over the other, and which of them sets a key.

Layers are kept apart after they are merged, so that errors, ``config show --origin`` and the check
for exposed secrets can name the source of each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from .models.settings import ENV_PREFIX
from .toml.keys import line_of, toml_key

ENVIRONMENT: Final = "environment"
DOT_ENV: Final = ".env"


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of values, with its name for errors.

    Attributes:
        text: That of a file, to find lines in.
        folder: Where relative paths start.
        variables: Those that gave the values, by their names in capitals, with their texts.
        others: Those without the host's prefix, by their names in capitals; the settings of plugins
            may name them.
        names: The names of variables that set keys of plugins, by the paths of those.
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
        """Tell whether the key at *path* is set here."""
        with suppress(KeyError):
            self.value(path)
            return True
        return False

    def sets_value(self, path: tuple[str | int, ...]) -> bool:
        """Tell whether *path* is set here to a value, not to a table, which other layers add to."""
        return self.sets(path) and not isinstance(self.value(path), Mapping)

    def location(self, path: Iterable[str | int]) -> str:
        """Return the name; for a file, with the line of the key at *path*."""
        line = line_of(self.text, tuple(map(str, path))) if self.text else None
        return self.name if line is None else f"{self.name}:{line}"

    @property
    def has_variables(self) -> bool:
        """True if its values come from variables; only these may hold secrets."""
        return self.name in (ENVIRONMENT, DOT_ENV)

    def where(self, path: Iterable[str | int]) -> str:
        """Return the location of the key at *path*, and the key's name there."""
        keys = tuple(path)
        named = self.names.get(tuple(map(str, keys))) or variable_name(keys)
        name = named if self.has_variables else key_name(keys)
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
        """Return the name of that layer, for a file with the line, or an empty string."""
        keys = tuple(path)
        layer = self.source(keys)
        return layer.location(keys) if layer else ""

    def where(self, path: Iterable[str | int]) -> str:
        """Return the source in which to correct the key at *path*, and the key's name there."""
        keys = tuple(path)
        # The highest plain value is in force. A table is merged from all layers that have it. A
        # missing key is best added where the rest of its table is: the lowest layer with the table
        # is the file, where most users write.
        found = [layer for layer in self.ordered if layer.sets_value(keys)][:1]
        found = found or [layer for layer in self.ordered if layer.sets(keys)]
        for depth in range(len(keys) - 1, 1, -1):
            found = found or [layer for layer in self.ordered if layer.sets(keys[:depth])][-1:]
        return " and ".join(layer.where(keys) for layer in reversed(found)) or key_name(keys)

    def variables(self) -> dict[str, str]:
        """Return the variables, with their texts, whose values no higher layer replaces."""
        # From the lowest layer up: a higher one drops variables even where it is a file or --set.
        found: dict[str, str] = {}
        for layer in reversed(self.ordered):
            kept = (item for item in found.items() if not layer.sets_value(path_of(item[0])))
            found = dict(kept) | dict(layer.variables)
        return found


def merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return *base* with the values of *over*, table by table.

    A table does not hide a plain value, so that validation reports one that stands in its place.
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
    """Yield each value with the keys that lead to it, those of a table before its inner tables.

    A list counts as one value; an empty table has none.
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
    """Return what to do about a secret that is missing, or that others can read.

    Args:
        own: The name of a variable of its own that the key at *path* has.
    """
    return f"set {own or variable_name(path)} in the environment or in .env"


def path_of(variable: str) -> tuple[str, ...]:
    """Return the path of the key that a variable sets, the reverse of `variable_name`."""
    return tuple(variable.removeprefix(ENV_PREFIX).lower().split("__"))


def key_name(path: Sequence[str | int]) -> str:
    """Return the key at *path* as a file spells it: its table, then its name."""
    (*tables, key), inside = _split(path)
    table = ".".join(map(toml_key, tables))
    return (f"[{table}] " if table else "") + toml_key(key) + inside


def _split(path: Sequence[str | int]) -> tuple[tuple[str, ...], str]:
    """Return the keys of *path* up to a list, and in words the element of the list."""
    count = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    inside = [f"element {part + 1}" if isinstance(part, int) else part for part in path[count:]]
    return tuple(map(str, path[:count])), "".join(f", {part}" for part in inside)
