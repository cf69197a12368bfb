"""The sources of settings: the file, the environment, .env files; with absolute paths."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel

from standards_mcp._utils.text import BYTE_ORDER_MARK, describe_decoding, nearest
from standards_mcp.errors import ConfigError

from .layers import (
    DOT_ENV,
    ENVIRONMENT,
    Layer,
    leaves,
    merged,
    nested,
    path_of,
    variable_name,
)
from .models.base import is_table, takes_json, type_of
from .models.external import read_servers_file, shared_servers
from .models.settings import ENV_PREFIX, Settings

CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"
# The second one is for plugins, which may declare it as a `Variable`; it has our prefix because it
# is older than their tables.
_OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, "STANDARDS_MCP_EMBEDDING_API_KEY"})
_MOVED: Final = {"catalog": ("plugins", "catalog")}
"""Tables that have another name now."""

_PATHS: Final = (
    ("state_dir",),
    ("servers_file",),
    ("server", "audit", "path"),
    ("server", "uds"),
)

_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_TWICE: Final = (
    "Cannot declare",
    "Cannot overwrite",
    "Cannot mutate",
    "Duplicate inline table key",
)
_CURLY_QUOTES: Final = dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"') | dict.fromkeys(
    "\u2018\u2019\u201a\u201b", "'"
)
_WORDS: Final = {
    "true": "write true",
    "false": "write false",
    **dict.fromkeys(("none", "null"), "leave the key out"),
}
_UNQUOTED: Final = 'text must be in quotes; write "..."'
_WINDOWS_PATH: Final = re.compile(r'"((?:[A-Za-z]:|\\\\[^\\"]+)\\(?!\\)[^"]*)"')
# TOML takes the \t of "C:\temp" for a tab.
_EATEN_PATH: Final = re.compile(r"[A-Za-z]:[\b\t\n\f\r]")

# Clients write this for an optional field of a bundle that the user left empty.
_PLACEHOLDER: Final = "${user_config."


def layer_of(name: str, values: Mapping[str, Any]) -> Layer:
    """Return a layer of values whose relative paths start in the working directory.

    Raises:
        ConfigError: It has a path in the home of a user who has none.
    """
    return _with_absolute_paths(Layer(name, dict(values)), Path())


def environment_layer() -> Layer:
    """Read the environment.

    Raises:
        ConfigError: A variable has our prefix and sets no key that there is.
    """
    return _variables_layer(ENVIRONMENT, os.environ)


def dot_env_layer() -> Layer:
    """Read ``.env`` of the working directory, if it is there.

    Raises:
        ConfigError: It cannot be read, or a variable in it has our prefix and sets no key.
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
    given = {name.upper(): text for name, text in variables.items() if is_given(name, text)}
    return _variables_layer(DOT_ENV, given)


def file_layer(file: Path, text: str | None = None) -> Layer:
    """Read a TOML file.

    Args:
        text: What it would say, in place of what it says.

    Raises:
        ConfigError: It cannot be read, or is not TOML.
    """
    try:
        text = file_text(file) if text is None else text.removeprefix(BYTE_ORDER_MARK)
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: {describe_decoding(exc)}") from None
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:  # also for a number or a nesting without end
        raise ConfigError(f"{file}{_explain(text, str(exc))}") from None
    if "mcpServers" in values:  # pasted as other clients spell it
        values = merged({"servers": shared_servers(values.pop("mcpServers"))}, values)
    layer = Layer(str(file), values, text)
    _refuse_eaten_paths(layer)
    return _with_absolute_paths(layer, file.parent)


def _refuse_eaten_paths(layer: Layer) -> None:
    for path, value in leaves(layer.values):
        elements = cast("list[object]", value) if isinstance(value, list) else [value]
        if any(isinstance(each, str) and _EATEN_PATH.match(each) for each in elements):
            raise ConfigError(
                f"{layer.where(path)}: a backslash means something in double quotes; write the "
                "path in single quotes"
            )


def _explain(text: str, error: str) -> str:
    """Return the line and the reason why a text is not TOML, with what to write instead.

    No value of the text is quoted but a path: it may be secret.
    """
    lines, place = text.rstrip().split("\n"), _PLACE.search(error)
    number = int(place[1]) if place else len(lines)
    line = "".join(lines[number - 1 : number])
    advice = _advice(line, line[int(place[2]) - 1 :] if place else "", error)
    where = f":{number}" if place or advice else ""
    return f"{where}: not valid TOML: {advice or error}"


def _advice(line: str, rest: str, error: str) -> str:
    """Return what to write for a usual mistake, else an empty string.

    Args:
        rest: The part of the line at which the parser stopped.
    """
    if path := _WINDOWS_PATH.search(line):
        return f"a backslash means something in double quotes; write the path as '{path[1]}'"
    if error.startswith(_TWICE):
        name = line.partition("=")[0].partition("#")[0].strip()
        how = "put its keys into one table" if name.startswith("[") else "keep one of them"
        return f"{name} is set twice; {how}"
    if rest[:1] in _CURLY_QUOTES:
        straight = _CURLY_QUOTES[rest[0]]
        return f"{rest[0]} is a curly quote; write {straight}, before the text and behind it"
    if error.startswith("Invalid value") and (word := re.match(r"[A-Za-z_]\w*", rest)):
        advice = _WORDS.get(word[0].lower())
        return f"{word[0]} means nothing here; {advice}" if advice else _UNQUOTED
    return ""


def servers_layer(file: str) -> Layer:
    """Read a JSON file of servers.

    Raises:
        ConfigError: It cannot be read, or has no servers.
    """
    path = Path(file)
    return _with_absolute_paths(Layer(file, {"servers": read_servers_file(path)}), path.parent)


def file_text(file: Path) -> str:
    """Return the text of a TOML file, without the byte order mark that some editors write.

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


def in_home(path: Path, where: Callable[[], str]) -> Path:
    """Return *path* with ``~`` replaced by the home folder.

    Args:
        where: Returns the source and the key of the path, for an error. Finding the line of a key
            takes milliseconds, so it is called for an error alone.

    Raises:
        ConfigError: There is no such home.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        reason = str(error).rstrip(".")
        raise ConfigError(f"{where()}: {path}: {reason}; write the whole path") from None


def _with_absolute_paths(layer: Layer, folder: Path) -> Layer:
    """Return *layer* with its paths absolute; a blank one is left out, as if it were not given.

    This happens before layers are merged: only here is it known in which folder a path starts.
    """
    layer = replace(layer, values=deepcopy(layer.values), folder=folder.absolute())
    servers = layer.values.get("servers")
    names = cast("Mapping[str, Any]", servers) if isinstance(servers, Mapping) else ()
    for path in (*_PATHS, *(("servers", name, "cwd") for name in names)):
        text = layer.value(path) if layer.sets_value(path) else None
        if not isinstance(text, str):  # anything else is for validation to report
            continue
        table = layer.value(path[:-1])
        if text.strip():
            found = in_home(Path(text.strip()), partial(layer.where, path))
            table[path[-1]] = str(folder.absolute() / found)
        else:
            del table[path[-1]]
    return layer


def _variables_layer(source: str, variables: Mapping[str, str | None]) -> Layer:
    given, others = dict[str, str](), dict[str, str]()
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
            given[upper] = value or ""
    return replace(layer_of(source, _nested(given)), variables=given, others=others)


def _nested(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that variables give, as nested tables.

    One for a whole table is read before those for keys in it. Where it holds plain text, the others
    are left out, so that validation sees and reports that text.
    """
    values: dict[str, Any] = {}
    for variable in sorted(variables):
        path = path_of(variable)
        values = merged(values, nested(path, _value_of(path, variables[variable])))
    return values


def _value_of(path: tuple[str, ...], text: str) -> Any:
    """Return a list or a table, which variables hold as JSON, and any other text as it is.

    A key of the host's that is text may hold JSON, too, such as credentials for a server. Whether
    ``123`` is a number is for validation to say: a plugin may ask for text.
    """
    kind = type_of(Settings, path)
    return from_json(text) if kind is None or takes_json(kind) else text


def refuse_moved(layer: Layer) -> None:
    """Refuse a table that has another name now.

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


def from_json(text: str) -> Any:
    """Return the list or the table that *text* holds as JSON; any other text as it is."""
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _nearest_variable(name: str) -> str:
    """Return ``; did you mean 'X'?`` for the variable that may be meant, or an empty string."""
    own = name.removeprefix(ENV_PREFIX)
    rest = own.partition("__")[2]  # the keys of a plugin or a server are not known
    paths = [*_paths(Settings), *((table, rest) for table in Settings.model_fields if rest)]
    known = [*map(variable_name, paths), CONFIG_VARIABLE]
    meant = {each.removeprefix(ENV_PREFIX): each for each in known}
    found = nearest(own, meant)
    return f"; did you mean {meant[found]!r}?" if found else ""


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each value of the host's own tables."""
    for name, field in model.model_fields.items():
        if is_table(inner := field.annotation):
            yield from ((name, *path) for path in _paths(inner))
        else:
            yield (name,)
