"""The settings of plugins: values of variables that their models name, and absolute paths.

A plugin's model may name variables of its own, and it alone tells which of its keys are paths.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from standards_mcp.errors import ConfigError
from standards_mcp.plugin import Variable

from .layers import Layer, Layers, merged, nested
from .models import is_table, takes_json
from .models.settings import ENV_PREFIX

Keys: TypeAlias = tuple[str, ...]

# Clients write this for an optional field of a bundle that the user left empty.
_PLACEHOLDER: Final = "${user_config."


def is_given(name: str, value: str | None) -> bool:
    """Return True if a variable has a value; an empty one counts for plugins only."""
    value = value or ""
    if not value.strip():
        return name.upper().startswith(f"{ENV_PREFIX}PLUGINS__")
    return not value.startswith(_PLACEHOLDER)


def from_json(text: str) -> Any:
    """Return the list or the table in a JSON text; any other text unchanged."""
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


# The names are known only after the plugin's import, so a misspelt one looks like a variable of
# another program and is ignored.
def own_variables(model: type[BaseModel]) -> dict[Keys, Variable]:
    """Return the own variables of keys, also in inner tables; see `Variable`."""
    return {
        path: item
        for path, field in _fields(model)
        for item in (*field.metadata, *_metadata(field.annotation))
        if isinstance(item, Variable)
    }


def plugin_variables(model: type[BaseModel]) -> dict[Keys, str]:
    """Return the names of the own variables, by key."""
    return {path: variable.name for path, variable in own_variables(model).items()}


def with_variables(layers: Layers, plugin: str, model: type[BaseModel]) -> Layers:
    """Return the layers with the values of a plugin's own variables."""
    fields, variables = dict(_fields(model)), plugin_variables(model)

    def completed(layer: Layer) -> Layer:
        values, texts, names = layer.values, dict[str, str](), dict[Keys, str]()
        for path, name in variables.items():
            text = layer.others.get(name.upper(), "")
            if is_given(name, text):
                keys = ("plugins", plugin, *path)
                value = from_json(text) if takes_json(fields[path].annotation) else text
                values = merged(values, nested(keys, value))
                texts[name], names[keys] = text, name
        return replace(
            layer,
            values=values,
            variables={**layer.variables, **texts},
            names={**layer.names, **names},
        )

    return Layers(tuple(map(completed, layers.ordered))) if variables else layers


def plugin_options(
    layers: Layers, plugin: str, model: type[BaseModel], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a plugin with the values of its variables and with absolute paths.

    A relative path, alone or in a list, starts in the folder of the file that sets it, otherwise in
    the working directory. A blank path counts as not set.

    Args:
        layers: The result of `with_variables`.
        options: The plugin's table, as the host read it.

    Raises:
        ConfigError: A path is in the home of an unknown user.
    """
    result = dict(options)
    for path in plugin_variables(model):
        keys = ("plugins", plugin, *path)
        if layer := layers.source(keys):
            result = merged(result, nested(path, layer.value(keys)))
    for name, field in model.model_fields.items():
        key = _key(name, field)
        keys = ("plugins", plugin, key)
        layer = layers.source(keys)
        if key in result and holds_paths(field.annotation):
            folder = (layer.folder if layer else Path()).absolute()
            value = result.pop(key)
            if not isinstance(value, str) or value.strip():
                result[key] = absolute(value, folder, partial(layers.where, keys))
    return result


def absolute(value: Any, folder: Path, where: Callable[[], str]) -> Any:
    """Make a path or a list of paths absolute; leave any other value to validation.

    Args:
        where: Returns the source and the key of the path, for an error. It is called in case of an
            error only, since it takes milliseconds to find the line of a key.

    Raises:
        ConfigError: The path is in the home of an unknown user.
    """
    if isinstance(value, list):
        return [absolute(item, folder, where) for item in cast("list[object]", value)]
    return str(folder / in_home(Path(value), where)) if isinstance(value, str) else value


def in_home(path: Path, where: Callable[[], str]) -> Path:
    """Return *path* with ``~`` replaced by the home folder. See `absolute`."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        reason = str(error).rstrip(".")
        raise ConfigError(f"{where()}: {path}: {reason}; write the whole path") from None


def holds_paths(annotation: object) -> bool:
    """Return True if a field is an optional or required path, or a list of paths."""
    return annotation is Path or any(map(holds_paths, get_args(annotation)))


def _fields(model: type[BaseModel], prefix: Keys = ()) -> Iterator[tuple[Keys, FieldInfo]]:
    """Yield the fields of a table and of its inner tables, with their paths."""
    for name, field in model.model_fields.items():
        path = (*prefix, _key(name, field))
        yield path, field
        if is_table(field.annotation):
            yield from _fields(field.annotation, path)


def _key(name: str, field: FieldInfo) -> str:
    """Return the key of a field in the table."""
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _metadata(annotation: object) -> Iterator[object]:
    """Yield the metadata of `Annotated` within a type, as in ``Annotated[...] | None``."""
    for argument in get_args(annotation):
        yield from getattr(argument, "__metadata__", ())
        yield from _metadata(argument)
