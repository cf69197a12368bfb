"""The records of plugins, before they are loaded and while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from standards_mcp._utils.installation import HOST, canonical
from standards_mcp._utils.text import describe_exception
from standards_mcp.config.layers import Layers, with_variables
from standards_mcp.config.problems import Problem
from standards_mcp.contributions.selection import Contributions
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Plugin, PluginSettings


def failure_reason(cause: BaseException) -> str:
    """Return the reason of a failure, from the exception that the plugin raised."""
    if isinstance(cause, PluginError):
        return getattr(cause, "reason", str(cause))  # a subclass may not call our __init__
    return describe_exception(cause)


class Status(StrEnum):
    """The status of a plugin."""

    DISCOVERED = "discovered"
    DISABLED = "disabled"
    FAILED = "failed"
    REGISTERED = "registered"
    STARTED = "started"


class PluginKind(StrEnum):
    """The place of a plugin's code: this process, a process of its own, or another server."""

    IMPORTED = "imported"
    ISOLATED = "isolated"
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PluginInfo:
    """A plugin before it is loaded.

    Attributes:
        load: Imports the plugin and returns its class.
        requires: The requirements in the distribution's metadata; empty for the host's own plugins.
        error: The reason why its metadata cannot be used, or an empty string.
        settings: Its settings, if the host can validate them without importing it.
        is_installed: True if its metadata was found; False if only the configuration names it.
        package: The package that its entry point names, or an empty string.
    """

    name: str
    load: Callable[[], object] = field(repr=False)
    kind: PluginKind = PluginKind.IMPORTED
    distribution: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()
    error: str = ""
    settings: PluginSettings | None = field(default=None, repr=False)
    is_installed: bool = True
    package: str = ""

    @property
    def is_own(self) -> bool:
        """True if it comes with the host."""
        return canonical(self.distribution) == HOST


@dataclass(slots=True, eq=False)
class PluginRecord:
    """A plugin while the host runs.

    Attributes:
        reason: The reason for its status, or an empty string.
        problems: The mistakes in its settings that made it fail.
        plugin: Its instance, once it is built.
        settings_type: The model of its table, once it is imported.
        secrets: The secret texts in its settings.
        title: Its title when it was built; the title of a provider may change later.
        instructions: Its instructions when it was built, like *title*.
        provides_services: True if its class provides services to other plugins.
        command: The name of its command; empty if it has none, None before it is read.
        seconds: Seconds that its own code has taken so far to load, start and stop.
        contributions: Its contributions; empty after a failure.
    """

    info: PluginInfo
    status: Status = Status.DISCOVERED
    reason: str = ""
    problems: tuple[Problem, ...] = field(default=(), repr=False)
    plugin: Plugin[Any] | None = field(default=None, repr=False)
    settings_type: type[PluginSettings] | None = field(default=None, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    title: str = ""
    instructions: str = ""
    provides_services: bool = False
    command: str | None = None
    seconds: float = 0.0
    contributions: Contributions = field(default_factory=Contributions)

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.info.name

    def layers(self, layers: Layers) -> Layers:
        """Return *layers* with the plugin's own variables, once `settings_type` is known."""
        if self.settings_type is None:
            return layers
        return with_variables(layers, self.name, self.settings_type)

    @contextmanager
    def timed(self) -> Generator[None]:
        """Add the time of the body to `seconds`."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began
