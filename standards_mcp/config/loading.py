"""The configuration in force: command line over environment over ``.env`` over a TOML file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError

from standards_mcp._utils.text import BYTE_ORDER_MARK, describe_decoding, describe_exception
from standards_mcp.errors import ConfigError

from .layers import Layer, Layers, leaves, merged
from .models.settings import Settings
from .problems import find_problems
from .variables import (
    CONFIG_VARIABLE,
    dot_env_layer,
    environment_layer,
    in_home,
    is_given,
    layer_of,
    refuse_moved,
    with_absolute_paths,
)

FILE_NAME: Final = "standards-mcp.toml"

_SET_TWICE: Final = ("Cannot declare", "Cannot overwrite", "Cannot mutate", "Duplicate inline")
_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_CURLY_QUOTES: Final = re.compile("[\u201c\u201d\u201e\u201f\u00ab\u00bb\u2018\u2019\u201a\u201b]")
_WINDOWS_PATH: Final = re.compile(r'"((?:[A-Za-z]:|\\\\[^\\"]+)\\(?!\\)[^"]*)"')
# TOML reads the \t of "C:\temp" as a tab.
_ESCAPED_PATH: Final = re.compile(r"[A-Za-z]:[\b\t\n\f\r]")
_SERVER_TABLES: Final = ("mcpServers", "servers")
_SERVER_KEYS: Final = ("type", "command", "args", "env", "cwd", "url", "headers")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings with their layers, so that an error can name the source."""

    settings: Settings
    file: Path | None
    layers: Layers = field(default_factory=Layers)

    def is_current(self) -> bool:
        """Return True if the file has not changed since it was read."""
        if self.file and self.layers.ordered:
            read = (layer.text for layer in self.layers.ordered if layer.name == str(self.file))
            with suppress(OSError, UnicodeDecodeError):
                return file_text(self.file) in read
        return True


@dataclass(frozen=True, slots=True)
class Sources:
    """The named file and the command line's values, to read the configuration again.

    Attributes:
        config: The file that the user named, or None.
        overrides: Nested values of the command line.
    """

    config: Path | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def load(self, text: str | None = None) -> LoadedSettings:
        """Return the effective settings. See `load_settings`."""
        return load_settings(self.config, self.overrides, text)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The possible paths of the file; the first existing one is read."""
        return config_paths(self.config)


def load_settings(
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    text: str | None = None,
) -> LoadedSettings:
    """Return the effective settings.

    Args:
        config: The file to read. By default ``STANDARDS_MCP_CONFIG``, the working directory and
            the user's configuration folder are tried.
        overrides: Nested values of the command line.
        text: Replaces the text of the file, to try an edit before it is made. Without a file, it
            counts as the user's own.

    Raises:
        ConfigError: One line for each problem: the file or variable, the key, and the nearest
            valid key.
    """
    file = find_config(config)
    if text is not None:
        file = file or user_config_file()
    layers = Layers(
        (
            layer_of("command line", overrides or {}),
            environment_layer(),
            dot_env_layer(),
            *([_file_layer(file, text)] if file else []),
        )
    )
    for layer in layers.ordered:
        refuse_moved(layer)
    layers = _with_shared_servers(layers)
    values = layers.merged()
    try:
        settings = Settings(**values)
    except ValidationError as exc:
        problems = find_problems(exc, Settings, values)
        raise ConfigError("\n".join(problem.line(layers) for problem in problems)) from None
    return LoadedSettings(settings, file, layers)


def find_config(config: Path | None = None) -> Path | None:
    """Return the configuration file in force, or None.

    Raises:
        ConfigError: The named file does not exist, or a folder has its name.
    """
    for path in config_paths(config):
        if path.is_dir():
            raise ConfigError(f"{path}: it is a folder, and should be a TOML file; rename it")
    named = _named_file(config)
    if named and not named.is_file():
        raise ConfigError(f"{named}: no such file; check --config or STANDARDS_MCP_CONFIG")
    return next((path for path in config_paths(config) if path.is_file()), None)


def config_paths(config: Path | None = None) -> tuple[Path, ...]:
    """Return the possible paths of the configuration file; the first existing one is read."""
    named = _named_file(config)
    return (named,) if named else (Path(FILE_NAME), user_config_file())


def user_config_file() -> Path:
    """Return the path of the user's own configuration file, which may not exist."""
    from platformdirs import user_config_path  # noqa: PLC0415  - not needed if a file is named

    return user_config_path("standards-mcp", appauthor=False) / FILE_NAME


def _named_file(config: Path | None) -> Path | None:
    value = os.environ.get(CONFIG_VARIABLE, "")
    named = config or (Path(value) if is_given(CONFIG_VARIABLE, value) else None)
    return in_home(named, lambda: "--config or STANDARDS_MCP_CONFIG") if named else None


def file_text(file: Path) -> str:
    """Return the text of a TOML file, without the byte order mark that some editors write.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8.
    """
    return file.read_text(encoding="utf-8-sig")


def _file_layer(file: Path, text: str | None) -> Layer:
    """Read a TOML file, or *text* in place of its text.

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
    except (ValueError, RecursionError) as exc:  # also for an endless number or nesting
        raise ConfigError(f"{file}{_explain(text, str(exc))}") from None
    if "mcpServers" in values:  # copied from the file of another client
        values = merged({"servers": _shared_servers(values.pop("mcpServers"))}, values)
    layer = Layer(str(file), values, text)
    for path, value in leaves(layer.values):
        elements = cast("list[object]", value) if isinstance(value, list) else [value]
        if any(isinstance(each, str) and _ESCAPED_PATH.match(each) for each in elements):
            raise ConfigError(
                f"{layer.where(path)}: a backslash starts an escape in double quotes; write the "
                "path in single quotes"
            )
    return with_absolute_paths(layer, file.parent)


def _explain(text: str, error: str) -> str:
    """Return the line and the reason of a TOML error, or advice for a usual mistake.

    The message quotes no value but a path, since a value may be secret.
    """
    lines, place = text.rstrip().split("\n"), _PLACE.search(error)
    number = int(place[1]) if place else len(lines)
    line = "".join(lines[number - 1 : number])
    advice = _advice(line, line[int(place[2]) - 1 :] if place else "", error)
    where = f":{number}" if place or advice else ""
    return f"{where}: not valid TOML: {advice or error}"


def _advice(line: str, rest: str, error: str) -> str:
    """Return the correction of a usual mistake, or an empty string.

    Args:
        rest: The part of the line at which the parser stopped.
    """
    if path := _WINDOWS_PATH.search(line):
        return f"a backslash starts an escape in double quotes; write the path as '{path[1]}'"
    if error.startswith(_SET_TWICE):
        name = line.partition("=")[0].strip()
        fix = "put its keys into one table" if name.startswith("[") else "keep one of them"
        return f"{name} is set twice; {fix}"
    if _CURLY_QUOTES.match(rest):
        return f"{rest[0]} is a curly quote; write a straight one, before the text and behind it"
    if error.startswith("Invalid value") and (word := re.match(r"[A-Za-z_]\w*", rest)):
        if word[0].lower() in ("true", "false"):
            return f"TOML booleans are lowercase: write {word[0].lower()}"
        return 'text must be in quotes; write "..."'
    return ""


def _with_shared_servers(layers: Layers) -> Layers:
    """Return the layers with ``servers_file`` as the lowest one, if the key is set."""
    file = layers.merged().get("servers_file")
    if not isinstance(file, str):
        return layers
    path = Path(file)
    try:
        layer = Layer(file, {"servers": _read_servers(path)})
        return Layers((*layers.ordered, with_absolute_paths(layer, path.parent)))
    except ConfigError as exc:
        raise ConfigError(f"{layers.where(('servers_file',))}: {exc}") from None


def _read_servers(file: Path) -> Any:
    """Return the servers of a JSON file with ``mcpServers``, the format of other clients.

    Raises:
        ConfigError: It cannot be read, or holds no such table.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: {describe_decoding(exc)}") from None
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{file}: not valid JSON: {describe_exception(exc)}") from None
    tables: Mapping[str, Any] = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    for name in _SERVER_TABLES:
        if isinstance(servers := tables.get(name), dict):
            return _shared_servers(cast("dict[str, Any]", servers))
    raise ConfigError(f'{file}: it has no "mcpServers"')


def _shared_servers(tables: Any) -> Any:
    """Convert the servers of another client's file to ``[servers]``.

    Keys that only another client understands are left out.
    """
    if not isinstance(tables, Mapping):
        return tables  # validation reports it
    servers = cast("Mapping[str, Any]", tables)
    return {
        name: _shared_server(cast("Mapping[str, Any]", entry)) if isinstance(entry, dict) else entry
        for name, entry in servers.items()
    }


def _shared_server(entry: Mapping[str, Any]) -> dict[str, Any]:
    taken = {key: entry[key] for key in _SERVER_KEYS if key in entry}
    return taken | ({"enabled": False} if entry.get("disabled") is True else {})
