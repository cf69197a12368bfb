"""Mistakes in settings, each in one line: where, which key, what is wrong, what may be meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from standards_mcp._utils.secrets import declares_secret
from standards_mcp._utils.text import did_you_mean

from .layers import Layers, key_name, set_variable
from .models.settings import PluginSection, Settings

_Location: TypeAlias = tuple[str | int, ...]


_NO_TABLE: Final = ("dict_type", "model_type")

_NO_LIST: Final = ("list_type", "tuple_type")

_MESSAGES: Final = {
    **dict.fromkeys(_NO_TABLE, "input should be a table"),
    **dict.fromkeys(_NO_LIST, """input should be a list, for example '["a", "b"]'"""),
    "path_type": "input should be a path",
}

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a value.

    Attributes:
        path: The tables and keys to it, and where it goes on in a list, from zero.
        message: What is wrong, and what may be meant.
        fix: What to do, where more is known than that the value is wrong.
        in_file: Whether a file is the place to mend it; a secret belongs in a variable.
    """

    path: tuple[str | int, ...]
    message: str
    fix: str = ""
    in_file: bool = True

    def line(self, layers: Layers) -> str:
        """Return the problem with the origin of the value and its key, in one line."""
        where = layers.where(self.path) if self.in_file else key_name(self.path)
        return " ".join(f"{where}: {self.message}".split())


class InvalidSettingsError(Exception):
    """Settings have problems; it holds none of their values."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(each.message for each in problems))
        self.problems = problems


def describe_hidden(layers: Layers) -> list[str]:
    """Return one line for each plain value in a single source that stands in place of a table.

    A key of that table in a higher source would hide it, and with it what it was to say.
    """
    lines: list[str] = []
    for layer in layers.ordered:
        if not layer.values:
            continue
        try:
            Settings(**layer.values)
        except ValidationError as exc:
            lines += [
                f"{layer.where(item['loc'])}: {_MESSAGES[item['type']]}"
                for item in exc.errors(include_url=False)
                if item["type"] in _NO_TABLE
            ]
    return lines


def find_problems(
    error: ValidationError, model: type[BaseModel], values: Any, prefix: tuple[str, ...] = ()
) -> list[Problem]:
    """Return the problems in *error*, one for each key.

    Args:
        values: What was validated.
        prefix: The tables in which the values stand.
    """
    found: dict[_Location, list[str]] = {}
    items = error.errors(include_url=False)
    for item in items:
        item["loc"] = _key_of(item["loc"], values)
        words = found.setdefault(item["loc"], [])
        if (told := _words(item, model, prefix)) not in words:
            words.append(told)
    missing = {item["loc"] for item in items if item["type"] == "missing"}
    problems: list[Problem] = []
    for key, words in found.items():
        problem = Problem((*prefix, *key), " or ".join(words))
        problems.append(_missing(problem, model, key) if key in missing else problem)
    return problems


def _missing(problem: Problem, model: type[BaseModel], location: _Location) -> Problem:
    """Return the problem that a key is missing with where to set it."""
    keys = [part for part in location if isinstance(part, str)]
    if len(keys) < len(location) or not declares_secret(model, keys):
        return replace(problem, fix=f"set {key_name(problem.path)}")
    fix = set_variable(problem.path)
    return replace(problem, message=f"{problem.message}; {fix}", fix=fix, in_file=False)


def _key_of(location: _Location, value: Any) -> _Location:
    """Return *location* without what it says of a plain *value*: the alternatives to be tried."""
    for depth, part in enumerate(location):
        if value is not _MISSING and not isinstance(value, Mapping | list):
            return location[:depth]
        value = _at(value, part)
    return location


def _at(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (LookupError, TypeError):
        return _MISSING


def _words(item: ErrorDetails, model: type[BaseModel], prefix: tuple[str, ...]) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key{_nearest_key(model, item, prefix)}"
    message = _MESSAGES.get(item["type"]) or item["msg"].removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}{_nearest_choice(item)}"


def _nearest_key(model: type[BaseModel], item: ErrorDetails, prefix: tuple[str, ...]) -> str:
    *table, key = item["loc"]
    known = _keys_at(model, table)
    if prefix and not table:
        known |= PluginSection.model_fields.keys()
    known_list = ", ".join(sorted(known)) or "none"
    return did_you_mean(str(key), known) or f"; known keys: {known_list}"


def _nearest_choice(item: ErrorDetails) -> str:
    if item["type"] not in ("literal_error", "enum"):
        return ""
    choices = re.findall(r"'([^']+)'", str(item.get("ctx", {}).get("expected", "")))
    return did_you_mean(str(item["input"]), choices)


def _keys_at(model: type[BaseModel], path: Iterable[str | int]) -> set[str]:
    parts = iter(path)
    for part in parts:
        field = model.model_fields.get(str(part))
        annotation: Any = field.annotation if field else None
        if get_origin(annotation) is dict:  # tables by name: the next part is one
            annotation = get_args(annotation)[1]
            next(parts, None)
        if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
            return set()
        model = annotation
    return set(model.model_fields)
