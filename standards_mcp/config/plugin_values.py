"""Variables and paths in a plugin's table, which only the plugin's model declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from standards_mcp.plugin import Variable

from .layers import Layer, Layers, merged, nested
from .models.base import is_table, takes_json
from .sources import from_json, in_home, is_given

Keys = tuple[str, ...]


def _fields(model: type[BaseModel], prefix: Keys = ()) -> Iterator[tuple[Keys, FieldInfo]]:
    """Yield the fields of a table and of its inner tables, by the keys that lead to them."""
    for name, field in model.model_fields.items():
        path = (*prefix, _key(name, field))
        yield path, field
        if is_table(field.annotation):
            yield from _fields(field.annotation, path)


def own_variables(model: type[BaseModel]) -> dict[Keys, Variable]:
    """Return the keys that have a variable of their own, see `Variable`, also in inner tables."""
    return {
        path: each
        for path, field in _fields(model)
        for each in (*field.metadata, *_metadata(field.annotation))
        if isinstance(each, Variable)
    }


def plugin_variables(model: type[BaseModel]) -> dict[Keys, str]:
    """Return the names of the keys' own variables, by key."""
    return {path: variable.name for path, variable in own_variables(model).items()}


def with_variables(layers: Layers, plugin: str, model: type[BaseModel]) -> Layers:
    """Return the layers with the values that such variables set for a plugin."""
    table = ("plugins", plugin)
    names = {(*table, *path): name for path, name in plugin_variables(model).items()}
    lists = {(*table, *path) for path, field in _fields(model) if takes_json(field.annotation)}

    def completed(layer: Layer) -> Layer:
        texts = {path: layer.others.get(name.upper(), "") for path, name in names.items()}
        given = {path: text for path, text in texts.items() if is_given(names[path], text)}
        if not given:
            return layer
        values = layer.values
        for path, text in given.items():
            values = merged(values, nested(path, from_json(text) if path in lists else text))
        return replace(
            layer,
            values=values,
            variables={**layer.variables, **{names[path]: text for path, text in given.items()}},
            names={**layer.names, **{path: names[path] for path in given}},
        )

    return Layers(tuple(map(completed, layers.ordered)))


def plugin_options(
    layers: Layers, plugin: str, model: type[BaseModel], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a plugin with the values of its variables, and with absolute paths.

    A relative path, alone or in a list, starts in the folder of the file that has it, else in the
    working directory. A blank one is left out, as if it were not given.

    Args:
        layers: As `with_variables` returns them.
        options: The plugin's table, as the host read it.

    Raises:
        ConfigError: A path is in the home of a user who has none.
    """
    result = _with_values(layers, plugin, model, options)
    for name, field in model.model_fields.items():
        key = _key(name, field)
        path = ("plugins", plugin, key)
        layer = layers.source(path)
        if key in result and _holds_paths(field.annotation):
            folder = (layer.folder if layer else Path()).absolute()
            given = result.pop(key)
            if not isinstance(given, str) or given.strip():
                result[key] = _absolute(given, folder, partial(layers.where, path))
    return result


def _with_values(
    layers: Layers, plugin: str, model: type[BaseModel], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a copy of the options with the values of variables that the layers hold."""
    result = dict(options)
    for path in plugin_variables(model):
        keys = ("plugins", plugin, *path)
        if layer := layers.source(keys):
            result = _put(result, path, layer.value(keys))
    return result


def _put(table: object, path: Keys, value: object) -> Any:
    """Return a copy of a table with a value at *path*; other values stay for validation."""
    key, *rest = path
    if not isinstance(table, Mapping):
        return table
    items = dict(cast("Mapping[str, Any]", table))
    items[key] = _put(items.get(key, {}), tuple(rest), value) if rest else value
    return items


def _absolute(value: Any, folder: Path, where: Callable[[], str]) -> Any:
    """Return a path, or a list of them, with whole paths; anything else is for validation."""
    if isinstance(value, list):
        return [_absolute(each, folder, where) for each in cast("list[object]", value)]
    return str(folder / in_home(Path(value), where)) if isinstance(value, str) else value


def _key(name: str, field: FieldInfo) -> str:
    """Return the key of a field in the table."""
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _metadata(annotation: object) -> Iterator[object]:
    """Yield the metadata of `Annotated` within a type, as in ``Annotated[...] | None``."""
    for each in get_args(annotation):
        yield from getattr(each, "__metadata__", ())
        yield from _metadata(each)


def _holds_paths(annotation: object) -> bool:
    """Tell whether a field is a path, or a list of paths, that may be left out."""
    return annotation is Path or any(map(_holds_paths, get_args(annotation)))
