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
from .models.base import takes_json
from .sources import from_json, in_home, is_given


def plugin_variables(model: type[BaseModel]) -> dict[str, str]:
    """Return the names of the keys' own variables, by key; see `Variable`."""
    return {
        _key(name, field): each.name
        for name, field in model.model_fields.items()
        for each in (*field.metadata, *_metadata(field.annotation))
        if isinstance(each, Variable)
    }


def with_variables(layers: Layers, plugin: str, model: type[BaseModel]) -> Layers:
    """Return the layers with the values that such variables set for a plugin."""
    names = plugin_variables(model)
    fields = model.model_fields.items()
    lists = {_key(name, field) for name, field in fields if takes_json(field.annotation)}

    def completed(layer: Layer) -> Layer:
        texts = {key: layer.others.get(name.upper(), "") for key, name in names.items()}
        given = {key: text for key, text in texts.items() if is_given(names[key], text)}
        if not given:
            return layer
        values = {key: from_json(text) if key in lists else text for key, text in given.items()}
        return replace(
            layer,
            values=merged(layer.values, nested(("plugins", plugin), values)),
            variables={**layer.variables, **{names[key]: text for key, text in given.items()}},
            names={**layer.names, **{("plugins", plugin, key): names[key] for key in given}},
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
    names, result = plugin_variables(model), dict(options)
    for name, field in model.model_fields.items():
        key = _key(name, field)
        path = ("plugins", plugin, key)
        layer = layers.source(path)
        if layer and key in names:
            result[key] = layer.value(path)
        if key in result and _holds_paths(field.annotation):
            folder = (layer.folder if layer else Path()).absolute()
            given = result.pop(key)
            if not isinstance(given, str) or given.strip():
                result[key] = _absolute(given, folder, partial(layers.where, path))
    return result


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
