"""The configuration in force: command line over environment over ``.env`` over a TOML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from standards_mcp.errors import ConfigError

from .errors import find_problems
from .layers import Layers
from .models.settings import Settings
from .sources import (
    CONFIG_VARIABLE,
    dot_env_layer,
    environment_layer,
    file_layer,
    file_text,
    in_home,
    is_given,
    layer_of,
    refuse_moved,
    servers_layer,
)

FILE_NAME: Final = "standards-mcp.toml"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings with their layers, so that an error can name the source."""

    settings: Settings
    file: Path | None
    layers: Layers = field(default_factory=Layers)

    def is_current(self) -> bool:
        """True if the file has not changed since it was read."""
        if self.file and self.layers.ordered:
            read = (layer.text for layer in self.layers.ordered if layer.name == str(self.file))
            with suppress(OSError, UnicodeDecodeError):
                return file_text(self.file) in read
        return True


@dataclass(frozen=True, slots=True)
class Sources:
    """The named file and the command line's values, to read the configuration again.

    Attributes:
        config: The file that was named, if one was.
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
        config: The file to read; without it ``STANDARDS_MCP_CONFIG``, the working directory and
            the user's configuration folder are tried.
        overrides: Nested values of the command line.
        text: What the file would say, to see what an edit changes before it is made. Without a
            file it is that of the user's own.

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
            *([file_layer(file, text)] if file else []),
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
        raise ConfigError("\n".join(each.line(layers) for each in problems)) from None
    return LoadedSettings(settings, file, layers)


def _with_shared_servers(layers: Layers) -> Layers:
    """Return the layers with ``servers_file`` as the lowest one, if the key is set."""
    file = layers.merged().get("servers_file")
    if not isinstance(file, str):
        return layers
    try:
        return Layers((*layers.ordered, servers_layer(file)))
    except ConfigError as exc:
        raise ConfigError(f"{layers.where(('servers_file',))}: {exc}") from None


def find_config(config: Path | None = None) -> Path | None:
    """Return the configuration file in force, or None.

    Raises:
        ConfigError: The file that was named does not exist, or a folder has its name.
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
    """Return where the user's own configuration file is, or would be."""
    from platformdirs import user_config_path  # noqa: PLC0415  - only where no file is named

    return user_config_path("standards-mcp", appauthor=False) / FILE_NAME


def _named_file(config: Path | None) -> Path | None:
    value = os.environ.get(CONFIG_VARIABLE, "")
    named = config or (Path(value) if is_given(CONFIG_VARIABLE, value) else None)
    return in_home(named, lambda: "--config or STANDARDS_MCP_CONFIG") if named else None
