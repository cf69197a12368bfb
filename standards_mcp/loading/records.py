"""What the host knows of one installed plugin."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from standards_mcp.config.errors import Problem
from standards_mcp.config.trust import canonical_name
from standards_mcp.contributions.collection import Contributions
from standards_mcp.plugin import Plugin, PluginSettings

DISTRIBUTION: Final = "standards-mcp"


class Status(StrEnum):
    """How far a plugin got."""

    DISCOVERED = "discovered"
    DISABLED = "disabled"
    FAILED = "failed"
    REGISTERED = "registered"
    STARTED = "started"


class PluginKind(StrEnum):
    """Where the code of a plugin runs."""

    IMPORTED = "imported"
    ISOLATED = "isolated"
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """What is known of a plugin before it is loaded.

    Attributes:
        load: Imports the plugin and returns its class.
        requires: The distribution's requirements, as its metadata spells them; none for the
            host's own.
        error: Why it cannot be loaded, as far as its metadata tell, or an empty string.
        settings: Its settings, where the host validates them without importing it.
        is_installed: It is there because it is installed, not because the configuration says so.
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

    @property
    def is_own(self) -> bool:
        """Whether it comes with the host."""
        return canonical_name(self.distribution) == DISTRIBUTION


@dataclass(slots=True)
class PluginRecord:
    """What the host knows of one plugin while it runs.

    Attributes:
        reason: Why the status is what it is, where that needs saying.
        problems: Those in its settings for which it failed.
        plugin: Its instance, once it is constructed.
        settings_type: What validates its table, once it is imported.
        secrets: Those of its settings.
        deprecated: What it uses of the plugin API that goes away, and what to use instead.
        seconds: How long its own code took so far to load, start and stop.
        contributions: What it contributes; nothing once it has failed.
    """

    info: PluginInfo
    status: Status = Status.DISCOVERED
    reason: str = ""
    problems: tuple[Problem, ...] = field(default=(), repr=False)
    plugin: Plugin[Any] | None = field(default=None, repr=False)
    settings_type: type[PluginSettings] | None = field(default=None, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    deprecated: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    contributions: Contributions = field(default_factory=Contributions)

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.info.name

    @contextmanager
    def timed(self) -> Generator[None]:
        """Count how long its own code takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began
