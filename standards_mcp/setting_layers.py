"""The sources of settings, one over the other, and which of them sets a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from .catalog_settings import VARIABLES
from .settings import ENV_PREFIX
from .toml_lines import line_of

ENVIRONMENT: Final = "environment"
DOT_ENV: Final = ".env"
FROM_VARIABLES: Final = (ENVIRONMENT, DOT_ENV)


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of values and what to call it in an error; of a file, its text too."""

    name: str
    values: dict[str, Any]
    text: str = ""

    def sets(self, path: Iterable[str | int]) -> bool:
        """Tell whether the key at *path* is set here."""
        return _has(self.values, tuple(map(str, path)))

    def place(self, path: Iterable[str | int]) -> str:
        """Return the name, for a file with the line of the key at *path*."""
        line = line_of(self.text, tuple(map(str, path))) if self.text else None
        return self.name if line is None else f"{self.name}:{line}"

    def where(self, path: Iterable[str | int]) -> str:
        """Return where the key at *path* stands and what it is called there."""
        keys = tuple(path)
        return f"{self.place(keys)}: {_key_name(keys, self.name)}"


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

    def origin(self, path: Iterable[str | int]) -> str:
        """Return the highest layer that sets the key at *path*, a file with the line."""
        keys = tuple(path)
        return next((layer.place(keys) for layer in self.ordered if layer.sets(keys)), "")

    def where(self, path: Iterable[str | int]) -> str:
        """Return the layer that sets the key at *path* and what the key is called there."""
        keys = tuple(path)
        found = (layer.where(keys) for layer in self.ordered if layer.sets(keys))
        return next(found, _key_name(keys, ""))


def merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return *base* with the values of *over*, table by table."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            value = merged(cast("dict[str, Any]", below), cast("Mapping[str, Any]", value))  # noqa: PLW2901
        result[key] = value
    return result


def variable_name(path: Sequence[str | int]) -> str:
    """Return the environment variable that sets the key at *path*."""
    keys = tuple(map(str, path))
    return VARIABLES.get(keys) or ENV_PREFIX + "__".join(keys).upper()


def _has(values: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if isinstance(values, list):
            return True
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = cast("Any", values[key])
    return True


def _key_name(path: tuple[str | int, ...], origin: str) -> str:
    if origin in FROM_VARIABLES:
        return variable_name(path)
    table = ".".join(str(part) for part in path[:-1])
    return f"[{table}] {path[-1]}" if table else str(path[-1])
