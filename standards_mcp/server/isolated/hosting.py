"""A host of one plugin and the services that it needs, without the limits of the host outside."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from standards_mcp.config.layers import DOT_ENV, ENVIRONMENT, Layer, Layers
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.arguments.schemas import Schema
from standards_mcp.contributions.arguments.signatures import Arguments, read_arguments
from standards_mcp.contributions.collection import Contributions
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.loading.steps.discovery import installed_plugins
from standards_mcp.plugin import Tool
from standards_mcp.remote.isolated import protocol as wire

_NO_LIMIT: Final = 1_000_000_000


def load_host(config: wire.WorkerConfig, finish: Callable[[Contributions], Contributions]) -> Host:
    """Return a host that has loaded this one plugin; its calls have no deadline.

    Args:
        finish: See `PluginManager`.
    """
    unlimited = ("timeout", "max_output_tokens", "max_argument_values")
    limits: Any = {"concurrency": 1000, **dict.fromkeys(unlimited, _NO_LIMIT)}
    settings = Settings(**config.settings, tools=limits, tool_names="declared")
    plugins = [info for info in installed_plugins() if info.name in settings.plugins]
    if config.name not in (info.name for info in plugins):
        missing = f"it is not installed in {sys.prefix}"
        plugins.append(PluginInfo(name=config.name, load=lambda: None, error=missing))
    settings = _of_installed(settings, {info.name for info in plugins})
    loaded = LoadedSettings(settings, None, _layers(config))
    host = Host(loaded, installed=plugins, remembers=False, timing=config.timing)
    host.manager.contributed.finish = finish
    host.manager.refuses_mistakes = False  # they are told to the host outside
    host.load(only=(config.name,))
    return host


def _of_installed(settings: Settings, names: Collection[str]) -> Settings:
    """Return settings without tables of plugins that another environment does not have."""
    tables = {name: table for name, table in settings.plugins.items() if name in names}
    return settings.model_copy(update={"plugins": tables})


def _layers(config: wire.WorkerConfig) -> Layers:
    """Return where the plugin's settings come from, as far as its model has to know it."""
    tables = config.settings["plugins"]
    keys = (
        Layer(key, {"plugins": {name: {key: tables[name][key]}}}, folder=Path(folder))
        for name, folders in config.folders.items()
        for key, folder in folders.items()
    )
    environment = {variable.upper(): text for variable, text in os.environ.items()}
    variables = Layer(ENVIRONMENT, {}, others=environment)
    return Layers((variables, Layer(DOT_ENV, {}, others=config.variables), *keys))


class Unlimited:
    """Takes limits and kept answers from tools, and gives them an expression instead of filters.

    All that is the business of the host outside, which also knows the filters of other plugins.

    Attributes:
        declared: The tools as their author declared them, by name.
    """

    def __init__(self) -> None:
        self.declared: dict[str, Tool] = {}
        self._changed: dict[str, Tool] = {}

    def __call__(self, contributions: Contributions) -> Contributions:
        """Return contributions of which the tools are changed; those that are already stay so."""
        return replace(contributions, tools=tuple(map(self._unlimited, contributions.tools)))

    def _unlimited(self, item: RegisteredTool) -> RegisteredTool:
        if self._changed.get(item.declared) is not item.tool:
            self.declared[item.declared] = item.tool
            self._changed[item.declared] = replace(
                item.tool, cache_ttl=0, rate_limit=None, max_output_tokens=None
            )
        item = replace(item, tool=self._changed[item.declared])
        if not item.tool.accepts_filters:
            return item
        return replace(item, arguments=_ExpressionArguments(read_arguments(item.tool)))


@dataclass(frozen=True, slots=True)
class _ExpressionArguments:
    """A tool's own arguments, and an expression. See `Arguments`."""

    own: Arguments

    @property
    def schema(self) -> Schema:
        return self.own.schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        expression = given.pop(wire.FILTER_ARGUMENT, None)
        return {**await self.own.validate(given), "filter": expression}


def limit_memory(size: int | None) -> None:
    """Let this process have no more address space than *size* bytes, on systems that can."""
    if size is None:
        return
    try:
        import resource  # noqa: PLC0415  - not on Windows
    except ImportError:
        return
    with suppress(ValueError, OSError):  # more than the system allows is no limit
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
