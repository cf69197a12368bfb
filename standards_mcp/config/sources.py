"""The sources of settings: the file, the environment, .env files; with paths made whole."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource

from standards_mcp._utils.text import nearest
from standards_mcp.errors import ConfigError

from .layers import DOT_ENV, ENVIRONMENT, Layer, merged, variable_name
from .models.catalog import EMBEDDING_KEY_VARIABLE, VARIABLES, named_values
from .models.external import read_servers_file, shared_servers
from .models.settings import ENV_PREFIX, Settings

_PATHS: Final = (("catalog", "path"), ("state_dir",), ("servers_file",))


def with_whole_paths(
    values: Mapping[str, Any], folder: Path, where: Callable[[tuple[str, ...]], str]
) -> dict[str, Any]:
    """Return *values* with its paths absolute; a blank one is left out, as if it were not given.

    Args:
        folder: Where relative paths start.
        where: Tells how to call the place of a key in an error.

    Raises:
        ConfigError: A path starts in the home of a user who has none, or is no path.
    """
    result = dict(values)
    for path in (*_PATHS, *_folders_of_servers(values)):
        result = _with_whole_path(result, path, folder, where(path))
    return result


def _with_whole_path(table: Any, path: tuple[str, ...], folder: Path, where: str) -> Any:
    """Return a table with the path at these keys absolute; a blank one is left out."""
    key, *inner = path
    if not isinstance(table, dict) or key not in table:
        return cast("Any", table)
    result = dict(cast("dict[str, Any]", table))
    if inner:
        return result | {key: _with_whole_path(result[key], tuple(inner), folder, where)}
    if not isinstance(result[key], str):
        return result  # what is no text is for validation to report
    text = str(result.pop(key)).strip()
    if "\0" in text:
        raise ConfigError(f"{where}: a path cannot hold a null character")
    return result | {key: str(folder.absolute() / in_home(Path(text), where))} if text else result


def _folders_of_servers(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    servers = values.get("servers")
    if not isinstance(servers, Mapping):
        return []
    return [("servers", name, "cwd") for name in cast("Mapping[str, Any]", servers)]


def in_home(path: Path, where: str) -> Path:
    """Return *path* with ``~`` replaced by the home folder.

    Args:
        where: What to call the place of the path in an error.

    Raises:
        ConfigError: There is no such home.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        reason = str(error).rstrip(".")
        raise ConfigError(f"{where}: {path}: {reason}; write the whole path") from None


CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"

_OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, EMBEDDING_KEY_VARIABLE})

_TABLES_BY_NAME: Final = frozenset({"plugins", "profiles", "servers"})

# What clients put where their user left an optional field of a bundle empty.
_PLACEHOLDER: Final = "${user_config."


def layer_of(name: str, values: Mapping[str, Any]) -> Layer:
    """Return a layer of values whose relative paths start in the working directory.

    Raises:
        ConfigError: A path in them is none.
    """
    return _with_whole_paths(Layer(name, dict(values)), Path())


def environment_layer() -> Layer:
    """Read the environment.

    Raises:
        ConfigError: A variable bears our prefix and sets nothing that there is.
    """
    values, variables = _environment()
    return replace(layer_of(ENVIRONMENT, values), variables=variables)


def dot_env_layer() -> Layer:
    """Read ``.env`` of the working directory, if it is there.

    Raises:
        ConfigError: It cannot be read, or sets what only the environment can.
    """
    values, variables = _dot_env()
    return replace(layer_of(DOT_ENV, values), variables=variables)


def file_layer(file: Path) -> Layer:
    """Read a TOML file.

    Raises:
        ConfigError: It cannot be read, or is not TOML.
    """
    try:
        text = file_text(file)
        values = tomllib.loads(text)
        if "mcpServers" in values:  # pasted as other clients spell it
            values = merged({"servers": shared_servers(values.pop("mcpServers"))}, values)
        return _with_whole_paths(Layer(str(file), values, text), file.parent)
    except (ValueError, RecursionError) as exc:  # also of a number or a nesting without end
        line = re.search(r"\(at line (\d+),", str(exc))
        place = f"{file}:{line[1]}" if line else str(file)
        raise ConfigError(f"{place}: not valid TOML: {exc}") from None
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from None


def servers_layer(file: str) -> Layer:
    """Read a JSON file of servers.

    Raises:
        ConfigError: It cannot be read, or holds none.
    """
    path = Path(file)
    return _with_whole_paths(Layer(file, {"servers": read_servers_file(path)}), path.parent)


def file_text(file: Path) -> str:
    """Return the text of a TOML file, without the mark that some editors begin it with.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8.
    """
    return file.read_text(encoding="utf-8-sig")


def is_given(name: str, value: str | None) -> bool:
    """Tell whether a variable says anything; only a plugin may have a use for an empty one."""
    value = value or ""
    if not value.strip():
        return name.upper().startswith(f"{ENV_PREFIX}PLUGINS__")
    return not value.startswith(_PLACEHOLDER)


def _with_whole_paths(layer: Layer, folder: Path) -> Layer:
    return replace(layer, values=with_whole_paths(layer.values, folder, layer.where))


class _AsText:
    """Reads lists and tables in variables as JSON and leaves all else to validation, as text.

    So a plugin gets ``123`` as text where it asks for text, and a mistake is reported with its key.
    """

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        del field_name, field
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            with suppress(ValueError, RecursionError):
                return json.loads(value)
        return value


class _Environment(_AsText, EnvSettingsSource):
    pass


class _DotEnv(_AsText, DotEnvSettingsSource):
    pass


def _environment() -> tuple[dict[str, Any], dict[str, str]]:
    source = _Environment(Settings)
    source.env_vars = _given(source.env_vars)
    values = source()
    known = {ENV_PREFIX + str(name).upper() for name in Settings.model_fields}
    for name, value in os.environ.items():
        upper = name.upper()
        if not upper.startswith(ENV_PREFIX) or upper in _OTHER_VARIABLES:
            continue
        base = upper.split("__", 1)[0]
        is_read = base.removeprefix(ENV_PREFIX).lower() in values or not is_given(name, value)
        if base not in known or not is_read:
            raise ConfigError(f"environment: {name}: unknown setting{_nearest_variable(upper)}")
    return merged(values, named_values(source.env_vars)), _of_settings(source.env_vars)


def _nearest_variable(name: str) -> str:
    """Return ``; did you mean 'X'?`` for the variable that may be meant, or an empty string."""
    head, separator, rest = name.removeprefix(ENV_PREFIX).partition("__")
    paths = list(_paths(Settings))
    if separator:  # it is the table that is unknown, or none
        plain = {name for (name, *below) in paths if not below} - _TABLES_BY_NAME
        meant = {
            name.upper(): variable_name((name,) if name in plain else (name, rest))
            for name in Settings.model_fields
        }
    else:
        own = [*VARIABLES.values(), *_OTHER_VARIABLES]
        meant = {each.removeprefix(ENV_PREFIX): each for each in own}
        for path in sorted(paths, key=len):
            if path not in VARIABLES:
                meant.setdefault(path[-1].upper(), variable_name(path))
    found = nearest(head, meant)
    return f"; did you mean {meant[found]!r}?" if found else ""


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each value of the host's own tables."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from ((name, *path) for path in _paths(inner))
        else:
            yield (name,)


def _dot_env() -> tuple[dict[str, Any], dict[str, str]]:
    try:
        source = _DotEnv(Settings, ".env", dotenv_filtering="match_prefix")
        source.env_vars = _given(source.env_vars)
        values = source()
    except UnicodeDecodeError as exc:
        raise ConfigError(f".env: is not UTF-8 text: {exc}") from None
    except OSError as exc:
        raise ConfigError(f".env: cannot be read: {exc.strerror}") from None
    if CONFIG_VARIABLE.lower() in source.env_vars:
        raise ConfigError(
            f".env: {CONFIG_VARIABLE}: it is read from the environment only; set it there, or "
            "use --config"
        )
    values.pop(EMBEDDING_KEY_VARIABLE.removeprefix(ENV_PREFIX).lower(), None)
    return merged(values, named_values(source.env_vars)), _of_settings(source.env_vars)


def _of_settings(variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return the variables that set something, by their names in capitals."""
    named = {name.upper(): value or "" for name, value in variables.items()}
    return {
        name: value
        for name, value in named.items()
        if name != CONFIG_VARIABLE and (name.startswith(ENV_PREFIX) or name in VARIABLES.values())
    }


def _given(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """Leave out the variables that say nothing."""
    return {name: value for name, value in variables.items() if is_given(name, value)}
