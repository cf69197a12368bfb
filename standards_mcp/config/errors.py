"""Validation errors of settings as one line each: source, key, reason and nearest name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from standards_mcp._utils.secrets import declares_secret
from standards_mcp._utils.text import did_you_mean

from .layers import Layer, Layers, key_name, set_variable
from .models.base import is_table, type_of
from .models.settings import PluginSection
from .plugin_values import plugin_variables

_Location: TypeAlias = tuple[str | int, ...]

_MESSAGES: Final = {
    **dict.fromkeys(("dict_type", "model_type"), "input should be a table"),
    **dict.fromkeys(
        ("list_type", "tuple_type"), """input should be a list, for example '["a", "b"]'"""
    ),
    **dict.fromkeys(
        ("string_type", "secret_type"), """input should be text in quotes, for example '"abc"'"""
    ),
    "path_type": """input should be a path in quotes, for example '"/srv/standards"'""",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An invalid value of the configuration, or a missing key.

    Attributes:
        path: The tables and keys that lead to it, and its index in a list.
        message: The reason, with the nearest valid name.
        fix: The next step, if one is known.
        where: The source and the key; by default, the source of the value in force.
    """

    path: tuple[str | int, ...]
    message: str
    fix: str = ""
    where: str = ""

    def line(self, layers: Layers) -> str:
        """Return the problem in one line, with the source of the value and its key."""
        where = self.where or layers.where(self.path)
        return " ".join(f"{where}: {self.message}".split())


class InvalidSettingsError(Exception):
    """Settings have problems. The error holds none of their values, which may be secret."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(each.message for each in problems))
        self.problems = problems


def misplaced_secret(layer: Layer, path: tuple[str, ...], own: str | None = None) -> Problem:
    """Return the problem of a secret in a layer that others can read. See `set_variable`."""
    fix = set_variable(path, own)
    return Problem(path, f"a secret does not belong here; {fix}", fix, layer.where(path))


def find_problems(
    error: ValidationError, model: type[BaseModel], values: Any, prefix: tuple[str, ...] = ()
) -> list[Problem]:
    """Return the problems in *error*, one for each key.

    Args:
        values: What was validated.
        prefix: The tables that contain the values.
    """
    found: dict[_Location, dict[str, None]] = {}
    missing: set[_Location] = set()
    for item in error.errors(include_url=False):
        item["loc"] = key = _key_of(item["loc"], values)
        found.setdefault(key, {})[_words(item, model, prefix)] = None
        if item["type"] == "missing":
            missing.add(key)
    problems: list[Problem] = []
    for key, words in found.items():
        problem = Problem((*prefix, *key), " or ".join(words))
        problems.append(_missing(problem, model, key) if key in missing else problem)
    return problems


def _missing(problem: Problem, model: type[BaseModel], location: _Location) -> Problem:
    """Return the problem of a missing key with the key to set; for a secret, with the variable."""
    key, keys = key_name(problem.path), [part for part in location if isinstance(part, str)]
    if len(keys) < len(location) or not declares_secret(model, keys):
        return replace(problem, fix=f"set {key}")
    own = plugin_variables(model).get(tuple(keys))
    fix = set_variable(problem.path, own)
    return replace(problem, message=f"{problem.message}; {fix}", fix=fix, where=key)


def _key_of(location: _Location, values: Any) -> _Location:
    """Return *location* up to the plain value that it leads to.

    If several types are allowed, pydantic adds the one that it tried to the location.
    """
    value = values
    for depth, part in enumerate(location):
        if not isinstance(value, Mapping | list):
            return location[:depth]
        try:
            value = cast("Any", value)[part]
        except (LookupError, TypeError):  # the key is missing
            return location
    return location


def _words(item: ErrorDetails, model: type[BaseModel], prefix: tuple[str, ...]) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key{_nearest_key(model, item, prefix)}"
    message = _MESSAGES.get(item["type"]) or item["msg"].removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}{_nearest_choice(item)}"


def _nearest_key(model: type[BaseModel], item: ErrorDetails, prefix: tuple[str, ...]) -> str:
    *table, key = item["loc"]
    kind = type_of(model, table)
    known = set(kind.model_fields) if is_table(kind) else set[str]()
    if prefix and not table:
        known |= PluginSection.model_fields.keys()
    known_list = ", ".join(sorted(known)) or "none"
    return did_you_mean(str(key), known) or f"; known keys: {known_list}"


def _nearest_choice(item: ErrorDetails) -> str:
    if item["type"] not in ("literal_error", "enum"):
        return ""
    choices = re.findall(r"'([^']+)'", str(item.get("ctx", {}).get("expected", "")))
    return did_you_mean(str(item["input"]), choices)
