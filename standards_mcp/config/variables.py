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
from typing import Any, Final, cast, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from standards_mcp._utils.text import describe_decoding, nearest
from standards_mcp.errors import ConfigError
from standards_mcp.plugin import Variable
from standards_mcp_catalog.settings import EMBEDDING_KEY_VARIABLE, SECRET_KEYS, VARIABLES

from .layers import DOT_ENV, ENVIRONMENT, Layer, Layers, merged, nested, path_of, variable_name
from .models import is_table, takes_json, type_of
from .models.settings import ENV_PREFIX, Settings

CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"
_OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, EMBEDDING_KEY_VARIABLE})

_PATHS: Final = (
    ("catalog", "path"),
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
    own_names, values, others = set(VARIABLES.values()), dict[str, str](), dict[str, str]()
    for name, value in variables.items():
        upper = name.upper()
        if not upper.startswith(ENV_PREFIX):
            others[upper] = value or ""
        if upper.startswith(ENV_PREFIX) and upper not in _OTHER_VARIABLES:
            if path_of(upper)[0] not in Settings.model_fields:
                raise ConfigError(f"{source}: {name}: unknown setting{_nearest_variable(upper)}")
        elif upper not in own_names:
            continue
        if is_given(upper, value):
            values[upper] = value or ""
    return replace(layer_of(source, _nested(values)), variables=values, others=others)


def _nested(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of variables as nested tables.

    A variable for a whole table is read before the variables for keys of that table. If it holds
    plain text, the others are left out, so that validation reports that text. A key's own name,
    such as ``PINECONE_API_KEY``, wins over the general one.
    """
    values: dict[str, Any] = {}
    own_names = set(VARIABLES.values())
    for variable in sorted(variables, key=lambda name: (name in own_names, name)):
        path = path_of(variable)
        values = merged(values, nested(path, _value_of(path, variables[variable])))
    return values


def _value_of(path: tuple[str, ...], text: str) -> Any:
    """Parse a variable for a list or a table as JSON, and return any other text unchanged.

    A text key of the host may hold JSON, too, such as credentials for a server. ``123`` stays text,
    since a plugin may ask for text; validation turns it into a number if needed.
    """
    if path in VARIABLES:
        return SecretStr(text.strip()) if path in SECRET_KEYS else text.strip()
    kind = type_of(Settings, path)
    return _from_json(text) if kind is None or takes_json(kind) else text


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
    variables = [*map(variable_name, paths), *_OTHER_VARIABLES]
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


def plugin_variables(model: type[BaseModel]) -> dict[str, str]:
    """Return the own variables of a plugin's keys, by key; see `Variable`."""
    return {
        _key(name, field): item.name
        for name, field in model.model_fields.items()
        for item in (*field.metadata, *_metadata(field.annotation))
        if isinstance(item, Variable)
    }


def with_variables(layers: Layers, plugin: str, model: type[BaseModel]) -> Layers:
    """Return the layers with the values of a plugin's own variables."""
    names = plugin_variables(model)
    fields = model.model_fields.items()
    lists = {_key(name, field) for name, field in fields if takes_json(field.annotation)}

    def completed(layer: Layer) -> Layer:
        all_texts = {key: layer.others.get(name.upper(), "") for key, name in names.items()}
        texts = {key: text for key, text in all_texts.items() if is_given(names[key], text)}
        if not texts:
            return layer
        values = {key: _from_json(text) if key in lists else text for key, text in texts.items()}
        return replace(
            layer,
            values=merged(layer.values, nested(("plugins", plugin), values)),
            variables={**layer.variables, **{names[key]: text for key, text in texts.items()}},
            names={**layer.names, **{("plugins", plugin, key): names[key] for key in texts}},
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
    names, result = plugin_variables(model), dict(options)
    for name, field in model.model_fields.items():
        key = _key(name, field)
        path = ("plugins", plugin, key)
        layer = layers.source(path)
        if layer and key in names:
            result[key] = layer.value(path)
        if key in result and _holds_paths(field.annotation):
            folder = (layer.folder if layer else Path()).absolute()
            value = result.pop(key)
            if not isinstance(value, str) or value.strip():
                result[key] = _absolute(value, folder, partial(layers.where, path))
    return result


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
