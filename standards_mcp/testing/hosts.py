"""A host with the tested plugins only, in its own folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.plugin import Plugin


@dataclass(frozen=True, slots=True)
class PluginUnderTest:
    """A plugin to test, with its environment.

    Attributes:
        settings: The plugin's own settings.
        beside: Other plugins by their names.
        config: More of the host's configuration.
        services: Objects to use in place of the services of plugins, by their types.
    """

    plugin_type: type[Plugin[Any]]
    name: str
    settings: Mapping[str, Any]
    beside: Mapping[str, type[Plugin[Any]]]
    config: Mapping[str, Any]
    services: Mapping[Callable[..., Any], object]

    def host(self, folder: Path) -> Host:
        """Return a strict host that has not loaded its plugins yet.

        Raises:
            ConfigError: The configuration has a table of an unknown plugin.
            PluginError: The plugin's name is not valid.
            pydantic.ValidationError: The configuration has a wrong key or value.
        """
        tables: dict[str, Any] = dict(self.config.get("plugins", {}))
        tables[self.name] = {**tables.get(self.name, {}), **self.settings}
        values: dict[str, Any] = {"strict": True, "state_dir": folder / "state"}
        values |= {**self.config, "plugins": tables}
        settings = Settings(**values)
        return Host(
            LoadedSettings(settings, None),
            installed=[
                _info(name, plugin_type)
                for name, plugin_type in {**self.beside, self.name: self.plugin_type}.items()
            ],
            services=self.services,
        )


def _info(name: str, plugin_type: type[Plugin[Any]]) -> PluginInfo:
    return PluginInfo(name=name, load=lambda: plugin_type)
