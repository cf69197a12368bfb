"""Read the configuration: the command line over the environment over ``.env`` over a TOML file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError

from standards_mcp._utils.text import (
    BYTE_ORDER_MARK,
    describe_decoding,
    describe_exception,
    nearest,
)
from standards_mcp.errors import ConfigError

from .layers import (
    DOT_ENV,
    ENVIRONMENT,
    Layer,
    Layers,
    absolute,
    counts_as_set,
    expand_home,
    from_json,
    holds_paths,
    leaves,
    merged,
    nested,
    parse_toml,
    path_of,
    variable_name,
)
from .models import takes_json, type_of
from .models.settings import ENV_PREFIX, Settings
from .problems import find_problems

FILE_NAME: Final = "standards-mcp.toml"
CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"
# These have the host's prefix but set no key of the host. Plugins may declare the second one as a
# `Variable`; it is older than the plugins' tables.
_VARIABLES_WITHOUT_KEY: Final = (CONFIG_VARIABLE, "STANDARDS_MCP_EMBEDDING_API_KEY")
_MOVED_TABLE: Final = ("catalog", ("plugins", "catalog"))
_ERROR_PLACE: Final = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")
_WINDOWS_PATH: Final = re.compile(r'"(?:[A-Za-z]:|\\)\\[^"]*"')
_BACKSLASH: Final = "a backslash starts an escape in double quotes; write the path in single quotes"
# TOML reads the \t of "C:\temp" as a tab.
_ESCAPED_PATH: Final = re.compile(r"[A-Za-z]:[\b\t\n\f\r]")
_SERVER_TABLES: Final = ("mcpServers", "servers")
_SERVER_KEYS: Final = ("type", "command", "args", "env", "cwd", "url", "headers")


class LoadedSettings(NamedTuple):
    """Settings with their layers, so that an error can name the source."""

    settings: Settings
    file: Path | None
    layers: Layers = Layers()

    def is_current(self) -> bool:
        """Return True if the file has not changed since it was read, or cannot be read now."""
        if self.file and self.layers.ordered:
            texts = (layer.text for layer in self.layers.ordered if layer.name == str(self.file))
            with suppress(OSError, UnicodeDecodeError):
                return file_text(self.file) in texts
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """The command line's file and values, to read the configuration again.

    Attributes:
        config: The file of ``--config``, or None.
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
        text: Is read in place of the file's text, to try an edit. If no file exists, it counts as
            the text of `user_config_file`.

    Raises:
        ConfigError: One line for each problem: the file or variable, the key, and the nearest
            valid key.
    """
    file = find_config(config)
    if text is not None:
        file = file or user_config_file()
    layers = Layers(
        (
            _with_absolute_paths(Layer("command line", dict(overrides or {})), Path()),
            _variables_layer(ENVIRONMENT, os.environ),
            _dot_env_layer(),
            *([_file_layer(file, text)] if file else []),
        )
    )
    layers = _with_shared_servers(layers)
    table, moved = _MOVED_TABLE
    if layer := layers.source((table,)):
        raise ConfigError(f"{layer.where((table,))}: it is now [{'.'.join(moved)}]")
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
        ConfigError: The chosen file does not exist, or a folder is at one of the possible paths.
    """
    for path in config_paths(config):
        if path.is_dir():
            raise ConfigError(f"{path}: it is a folder, and should be a TOML file; rename it")
    chosen = _chosen_file(config)
    if chosen and not chosen.is_file():
        raise ConfigError(f"{chosen}: no such file; check --config or STANDARDS_MCP_CONFIG")
    return next((path for path in config_paths(config) if path.is_file()), None)


def config_paths(config: Path | None = None) -> tuple[Path, ...]:
    """Return the possible paths of the configuration file; the first existing one is read."""
    chosen = _chosen_file(config)
    return (chosen,) if chosen else (Path(FILE_NAME), user_config_file())


def user_config_file() -> Path:
    """Return the path of the user's own configuration file, which may not exist."""
    from platformdirs import user_config_path  # noqa: PLC0415  - not needed if a file is named

    return user_config_path("standards-mcp", appauthor=False) / FILE_NAME


def _chosen_file(config: Path | None) -> Path | None:
    """Return *config*, or the file that ``STANDARDS_MCP_CONFIG`` names, or None."""
    value = os.environ.get(CONFIG_VARIABLE, "")
    file = config or (Path(value) if counts_as_set(CONFIG_VARIABLE, value) else None)
    return expand_home(file, lambda: "--config or STANDARDS_MCP_CONFIG") if file else None


def file_text(file: Path) -> str:
    """Return the text of a TOML file, without the byte order mark that some editors write.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: The file is not UTF-8.
    """
    return file.read_text(encoding="utf-8-sig")


def _read(file: Path) -> str:
    """Return the text of a file. See `file_text`.

    Raises:
        ConfigError: The file cannot be read, or is not UTF-8.
    """
    try:
        return file_text(file)
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: {describe_decoding(exc)}") from None


def _variables_layer(source: str, variables: Mapping[str, str | None]) -> Layer:
    """Read the variables of the environment or of ``.env``.

    Raises:
        ConfigError: A variable has the host's prefix and sets no existing key.
    """
    texts, others = dict[str, str](), dict[str, str]()
    for name, value in variables.items():
        upper, text = name.upper(), value or ""
        if not upper.startswith(ENV_PREFIX) or upper in _VARIABLES_WITHOUT_KEY:
            others[upper] = text
            continue
        table, *rest = path_of(upper)
        if table == _MOVED_TABLE[0]:
            new_name = variable_name((*_MOVED_TABLE[1], *rest))
            raise ConfigError(f"{source}: {name}: it is {new_name} now")
        if table not in Settings.model_fields:
            closest = nearest(table, (*Settings.model_fields, "config"))
            hint = f"; did you mean {variable_name((closest, *rest))!r}?" if closest else ""
            raise ConfigError(f"{source}: {name}: unknown setting{hint}")
        if counts_as_set(upper, text):
            texts[upper] = text
    values: dict[str, Any] = {}
    for variable in sorted(texts):  # a variable for a table before variables for its keys
        path = path_of(variable)
        kind = type_of(Settings, path)
        # A key for text may hold JSON, too, such as credentials for a server. `123` stays text,
        # since a plugin may expect text; validation turns it into a number if needed.
        is_text = kind is not None and not takes_json(kind)
        value = texts[variable] if is_text else from_json(texts[variable])
        values = merged(values, nested(path, value))
    layer = _with_absolute_paths(Layer(source, values), Path())
    return replace(layer, variables=texts, others=others)


def _dot_env_layer() -> Layer:
    """Read ``.env`` of the working directory, if the file exists.

    Raises:
        ConfigError: The file cannot be read, or a variable in it has the host's prefix and sets no
            existing key.
    """
    file = Path(DOT_ENV)
    if not file.is_file():
        return Layer(DOT_ENV, {})
    # Imported here, since few users have such a file and the import takes 10 ms of each start.
    from pydantic_settings import BaseSettings, DotEnvSettingsSource  # noqa: PLC0415

    _read(file)  # explains a file that pydantic-settings cannot read
    variables = DotEnvSettingsSource(BaseSettings, file).env_vars
    if CONFIG_VARIABLE.lower() in variables:
        raise ConfigError(
            f".env: {CONFIG_VARIABLE}: it is read from the environment only; set it there, or "
            "use --config"
        )
    texts = {name.upper(): text for name, text in variables.items() if counts_as_set(name, text)}
    return _variables_layer(DOT_ENV, texts)


def _with_absolute_paths(layer: Layer, folder: Path) -> Layer:
    """Return *layer* with absolute paths and without blank ones, which count as not set.

    This happens before layers are merged: afterwards the folder of a relative path is unknown.
    """
    layer = replace(layer, values=deepcopy(layer.values), folder=folder.absolute())
    for path, value in list(leaves(layer.values)):
        if isinstance(value, str) and holds_paths(type_of(Settings, path)):
            table = layer.value(path[:-1])
            if value.strip():
                where = partial(layer.where, path)
                table[path[-1]] = absolute(value.strip(), layer.folder, where)
            else:
                del table[path[-1]]
    return layer


def _file_layer(file: Path, text: str | None) -> Layer:
    """Read a TOML file, or *text* in place of its text.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or has a Windows path in double quotes.
    """
    text = _read(file) if text is None else text.removeprefix(BYTE_ORDER_MARK)
    try:
        values = parse_toml(text)
    except (ValueError, RecursionError) as exc:  # also for an endless number or nesting
        raise ConfigError(f"{file}{_explain(text, str(exc))}") from None
    if "mcpServers" in values:  # copied from the file of another client
        values = merged({"servers": _shared_servers(values.pop("mcpServers"))}, values)
    layer = Layer(str(file), values, text)
    for path, value in leaves(layer.values):
        elements = cast("list[object]", value) if isinstance(value, list) else [value]
        if any(isinstance(item, str) and _ESCAPED_PATH.match(item) for item in elements):
            raise ConfigError(f"{layer.where(path)}: {_BACKSLASH}")
    return _with_absolute_paths(layer, file.parent)


def _explain(text: str, error: str) -> str:
    """Return the line and the reason of a TOML error, usually a Windows path in double quotes.

    The reason quotes no value, since a value may be secret.
    """
    lines, place = text.rstrip().split("\n"), _ERROR_PLACE.search(error)
    number = int(place[1] or len(lines)) if place else 0
    line = "".join(lines[number - 1 : number]) if number else ""
    where = f":{number}" if number else ""
    return f"{where}: not valid TOML: {_BACKSLASH if _WINDOWS_PATH.search(line) else error}"


def _with_shared_servers(layers: Layers) -> Layers:
    """Return the layers with ``servers_file`` as the last one, if the key is set."""
    file = layers.merged().get("servers_file")
    if not isinstance(file, str):
        return layers
    path = Path(file)
    try:
        layer = Layer(file, {"servers": _read_servers(path)})
        return Layers((*layers.ordered, _with_absolute_paths(layer, path.parent)))
    except ConfigError as exc:
        raise ConfigError(f"{layers.where(('servers_file',))}: {exc}") from None


def _read_servers(file: Path) -> Any:
    """Return ``mcpServers`` or ``servers`` of a JSON file, the format of other clients.

    Raises:
        ConfigError: The file cannot be read, or has no such table.
    """
    text = _read(file)
    try:
        data = json.loads(text)
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
    servers = dict(cast("Mapping[str, Any]", tables))
    for name, entry in servers.items():
        if isinstance(entry, dict):
            table = cast("dict[str, Any]", entry)
            disabled = {"enabled": False} if table.get("disabled") is True else {}
            servers[name] = {key: table[key] for key in _SERVER_KEYS if key in table} | disabled
    return servers
