"""Read settings from variables of the environment and of ``.env``, and make paths absolute.

A plugin's model may name variables of its own, and it alone tells which of its keys are paths; the
second half of this module reads these.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from standards_mcp._utils.text import describe_decoding, nearest
from standards_mcp.errors import ConfigError
from standards_mcp.plugin import Variable

from .layers import DOT_ENV, ENVIRONMENT, Layer, Layers, merged, nested, path_of, variable_name
from .models import is_table, takes_json, type_of
from .models.settings import ENV_PREFIX, Settings

CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"
# Plugins may declare the second one as a `Variable`. It has the prefix of the host because it is
# older than the plugins' tables.
_OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, "STANDARDS_MCP_EMBEDDING_API_KEY"})
_MOVED: Final = {"catalog": ("plugins", "catalog")}
"""Renamed tables."""
Keys: TypeAlias = tuple[str, ...]

_PATHS: Final = (
    ("state_dir",),
    ("servers_file",),
    ("server", "audit", "path"),
    ("server", "uds"),
)

# Clients write this for an optional field of a bundle that the user left empty.
_PLACEHOLDER: Final = "${user_config."


def layer_of(name: str, values: Mapping[str, Any]) -> Layer:
    """Return a layer of values whose relative paths start in the working directory.

    Raises:
        ConfigError: It has a path in the home of an unknown user.
    """
    return with_absolute_paths(Layer(name, dict(values)), Path())


def environment_layer() -> Layer:
    """Read the environment.

    Raises:
        ConfigError: A variable has the host's prefix and sets no existing key.
    """
    return _variables_layer(ENVIRONMENT, os.environ)


def dot_env_layer() -> Layer:
    """Read ``.env`` of the working directory, if the file exists.

    Raises:
        ConfigError: It cannot be read, or a variable in it has the host's prefix and sets no
            existing key.
    """
    file = Path(DOT_ENV)
    if not file.exists() or file.is_dir():
        return Layer(DOT_ENV, {})
    # Imported here, since few users have such a file and the import takes 10 ms of each start.
    from pydantic_settings import BaseSettings, DotEnvSettingsSource  # noqa: PLC0415

    try:
        variables = DotEnvSettingsSource(BaseSettings, file).env_vars
    except UnicodeDecodeError as exc:
        raise ConfigError(f".env: {describe_decoding(exc)}") from None
    except OSError as exc:
        raise ConfigError(f".env: cannot be read: {exc.strerror}") from None
    if CONFIG_VARIABLE.lower() in variables:
        raise ConfigError(
            f".env: {CONFIG_VARIABLE}: it is read from the environment only; set it there, or "
            "use --config"
        )
    values = {name.upper(): text for name, text in variables.items() if is_given(name, text)}
    return _variables_layer(DOT_ENV, values)


def is_given(name: str, value: str | None) -> bool:
    """Return True if a variable has a value; an empty one counts for plugins only."""
    value = value or ""
    if not value.strip():
        return name.upper().startswith(f"{ENV_PREFIX}PLUGINS__")
    return not value.startswith(_PLACEHOLDER)


def in_home(path: Path, where: Callable[[], str]) -> Path:
    """Return *path* with ``~`` replaced by the home folder.

    Args:
        where: Returns the source and the key of the path, for an error. It is called in case of an
            error only, since it takes milliseconds to find the line of a key.

    Raises:
        ConfigError: The user is unknown, or has no home.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        reason = str(error).rstrip(".")
        raise ConfigError(f"{where()}: {path}: {reason}; write the whole path") from None


def with_absolute_paths(layer: Layer, folder: Path) -> Layer:
    """Return *layer* with absolute paths and without blank ones, which count as not set.

    This happens before layers are merged: afterwards the folder of a relative path is unknown.
    """
    layer = replace(layer, values=deepcopy(layer.values), folder=folder.absolute())
    servers = layer.values.get("servers")
    names = cast("Mapping[str, Any]", servers) if isinstance(servers, Mapping) else ()
    for path in (*_PATHS, *(("servers", name, "cwd") for name in names)):
        text = layer.value(path) if layer.sets_value(path) else None
        if not isinstance(text, str):  # validation reports any other type
            continue
        table = layer.value(path[:-1])
        if text.strip():
            expanded = in_home(Path(text.strip()), partial(layer.where, path))
            table[path[-1]] = str(folder.absolute() / expanded)
        else:
            del table[path[-1]]
    return layer


def _variables_layer(source: str, variables: Mapping[str, str | None]) -> Layer:
    values, others = dict[str, str](), dict[str, str]()
    for name, value in variables.items():
        upper = name.upper()
        if not upper.startswith(ENV_PREFIX) or upper in _OTHER_VARIABLES:
            others[upper] = value or ""
            continue
        path = path_of(upper)
        if moved := _MOVED.get(path[0]):
            now = variable_name((*moved, *path[1:]))
            raise ConfigError(f"{source}: {name}: it is {now} now")
        if path[0] not in Settings.model_fields:
            raise ConfigError(f"{source}: {name}: unknown setting{_nearest_variable(upper)}")
        if is_given(upper, value):
            values[upper] = value or ""
    return replace(layer_of(source, _nested(values)), variables=values, others=others)


def _nested(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of variables as nested tables.

    A variable for a whole table is read before the variables for keys of that table. If it holds
    plain text, the others are left out, so that validation reports that text.
    """
    values: dict[str, Any] = {}
    for variable in sorted(variables):
        path = path_of(variable)
        values = merged(values, nested(path, _value_of(path, variables[variable])))
    return values


def _value_of(path: tuple[str, ...], text: str) -> Any:
    """Parse a variable for a list or a table as JSON, and return any other text unchanged.

    A text key of the host may hold JSON, too, such as credentials for a server. ``123`` stays text,
    since a plugin may ask for text; validation turns it into a number if needed.
    """
    kind = type_of(Settings, path)
    # pydantic-settings would read `123456` as a number, and a plugin would refuse its own key.
    return _from_json(text) if kind is None or takes_json(kind) else text


def refuse_moved(layer: Layer) -> None:
    """Refuse a renamed table.

    Raises:
        ConfigError: The layer has one.
    """
    for table, path in _MOVED.items():
        if layer.sets((table,)):
            now = ".".join(path)
            raise ConfigError(
                f"{layer.location((table,))}: [{table}] is [{now}] now, and [{table}.NAME] is "
                f"[{now}.NAME]"
            )


def _from_json(text: str) -> Any:
    """Return the list or the table in a JSON text; any other text unchanged."""
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _nearest_variable(name: str) -> str:
    """Return ``; did you mean 'X'?`` for the closest variable, or an empty string."""
    own = name.removeprefix(ENV_PREFIX)
    rest = own.partition("__")[2]  # the keys of a plugin or a server are unknown here
    paths = [*_paths(Settings), *((table, rest) for table in Settings.model_fields if rest)]
    variables = [*map(variable_name, paths), CONFIG_VARIABLE]
    by_own_name = {variable.removeprefix(ENV_PREFIX): variable for variable in variables}
    closest = nearest(own, by_own_name)
    return f"; did you mean {by_own_name[closest]!r}?" if closest else ""


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each value in the host's own tables."""
    for name, field in model.model_fields.items():
        if is_table(inner := field.annotation):
            yield from ((name, *path) for path in _paths(inner))
        else:
            yield (name,)


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
    table = ("plugins", plugin)
    names = {(*table, *path): name for path, name in plugin_variables(model).items()}
    lists = {(*table, *path) for path, field in _fields(model) if takes_json(field.annotation)}

    def completed(layer: Layer) -> Layer:
        all_texts = {path: layer.others.get(name.upper(), "") for path, name in names.items()}
        texts = {path: text for path, text in all_texts.items() if is_given(names[path], text)}
        if not texts:
            return layer
        values = layer.values
        for path, text in texts.items():
            values = merged(values, nested(path, _from_json(text) if path in lists else text))
        return replace(
            layer,
            values=values,
            variables={**layer.variables, **{names[path]: text for path, text in texts.items()}},
            names={**layer.names, **{path: names[path] for path in texts}},
        )

    return Layers(tuple(map(completed, layers.ordered)))


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
    result = _with_values(layers, plugin, model, options)
    for name, field in model.model_fields.items():
        key = _key(name, field)
        path = ("plugins", plugin, key)
        layer = layers.source(path)
        if key in result and _holds_paths(field.annotation):
            folder = (layer.folder if layer else Path()).absolute()
            value = result.pop(key)
            if not isinstance(value, str) or value.strip():
                result[key] = _absolute(value, folder, partial(layers.where, path))
    return result


def _with_values(
    layers: Layers, plugin: str, model: type[BaseModel], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a copy of the options with the values of the plugin's own variables."""
    result = dict(options)
    for path in plugin_variables(model):
        keys = ("plugins", plugin, *path)
        if layer := layers.source(keys):
            result = _put(result, path, layer.value(keys))
    return result


def _put(table: object, path: Keys, value: object) -> Any:
    """Return a copy of a table with a value at *path*; validation reports other types."""
    key, *rest = path
    if not isinstance(table, Mapping):
        return table
    items = dict(cast("Mapping[str, Any]", table))
    items[key] = _put(items.get(key, {}), tuple(rest), value) if rest else value
    return items


def _fields(model: type[BaseModel], prefix: Keys = ()) -> Iterator[tuple[Keys, FieldInfo]]:
    """Yield the fields of a table and of its inner tables, with their paths."""
    for name, field in model.model_fields.items():
        path = (*prefix, _key(name, field))
        yield path, field
        if is_table(field.annotation):
            yield from _fields(field.annotation, path)


def _absolute(value: Any, folder: Path, where: Callable[[], str]) -> Any:
    """Make a path or a list of paths absolute; leave any other value to validation."""
    if isinstance(value, list):
        return [_absolute(item, folder, where) for item in cast("list[object]", value)]
    return str(folder / in_home(Path(value), where)) if isinstance(value, str) else value


def _key(name: str, field: FieldInfo) -> str:
    """Return the key of a field in the table."""
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _metadata(annotation: object) -> Iterator[object]:
    """Yield the metadata of `Annotated` within a type, as in ``Annotated[...] | None``."""
    for argument in get_args(annotation):
        yield from getattr(argument, "__metadata__", ())
        yield from _metadata(argument)


def _holds_paths(annotation: object) -> bool:
    """Return True if a field is an optional or required path, or a list of paths."""
    return annotation is Path or any(map(_holds_paths, get_args(annotation)))
