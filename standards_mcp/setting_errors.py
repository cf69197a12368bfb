"""Mistakes in settings, each in one line: where, which key, what is wrong, what may be meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import did_you_mean
from .setting_layers import Layers
from .settings import PluginSection, Settings

_NO_TABLE: Final = ("dict_type", "model_type")
_NO_LIST: Final = ("list_type", "tuple_type")
_MESSAGES: Final = {
    **dict.fromkeys(_NO_TABLE, "input should be a table"),
    **dict.fromkeys(_NO_LIST, """input should be a list, for example '["a", "b"]'"""),
    "path_type": "input should be a path",
}


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
            found = (item for item in exc.errors(include_url=False) if item["type"] in _NO_TABLE)
            lines += [_line(item, Settings, Layers((layer,)), ()) for item in found]
    return lines


def describe_errors(
    error: ValidationError,
    model: type[BaseModel],
    layers: Layers,
    prefix: tuple[str, ...] = (),
) -> list[str]:
    """Return one line for each mistake in *error*: origin, key, what is wrong, nearest key."""
    return [_line(item, model, layers, prefix) for item in error.errors(include_url=False)]


def _line(
    item: ErrorDetails, model: type[BaseModel], layers: Layers, prefix: tuple[str, ...]
) -> str:
    where = layers.where((*prefix, *item["loc"]))
    if item["type"] == "extra_forbidden":
        return f"{where}: unknown key{_nearest_key(model, item, prefix)}"
    message = _MESSAGES.get(item["type"]) or item["msg"].removeprefix("Value error, ")
    message = f"{message[:1].lower()}{message[1:]}{_nearest_choice(item)}"
    return " ".join(f"{where}: {message}".split())


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
