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
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.plugin import Filter, Plugin, PluginSettings

DISTRIBUTION: Final = "standards-mcp"


class Status(StrEnum):
    """How far a plugin got."""

    DISCOVERED = "discovered"
    DISABLED = "disabled"
    FAILED = "failed"
    REGISTERED = "registered"
    STARTED = "started"


@dataclass(slots=True, kw_only=True)
class PluginRecord:
    """What the host knows of one installed plugin.

    Attributes:
        load: Imports the plugin and returns its class.
        requires: The distribution's requirements, as its metadata spells them; none for the
            host's own.
        reason: Why the status is what it is, where that needs saying.
        secrets: Those of its settings.
        problems: Those in its settings for which it failed.
        settings: Its settings, where the host validates them without importing it.
        settings_type: What validates its table, once it is imported.
        is_server: It is another MCP server, which the configuration names.
        is_isolated: It runs in a process of its own, and is not imported.
        from_table: It is there because the configuration says so, not because it is installed.
        seconds: How long its own code took so far to load, start and stop.
        deprecated: What it uses of the plugin API that goes away, and what to use instead.
    """

    name: str
    load: Callable[[], object] = field(repr=False)
    distribution: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()
    status: Status = Status.DISCOVERED
    reason: str = ""
    plugin: Plugin[Any] | None = field(default=None, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    deprecated: list[str] = field(default_factory=list[str])
    problems: tuple[Problem, ...] = field(default=(), repr=False)
    filters: tuple[Filter, ...] = ()
    tools: tuple[RegisteredTool, ...] = ()
    prompts: tuple[RegisteredPrompt, ...] = ()
    resources: tuple[RegisteredResource, ...] = ()
    settings: PluginSettings | None = field(default=None, repr=False)
    settings_type: type[PluginSettings] | None = field(default=None, repr=False)
    is_server: bool = False
    is_isolated: bool = False
    from_table: bool = False
    seconds: float = 0.0

    @property
    def is_own(self) -> bool:
        """Whether it comes with the host."""
        return canonical_name(self.distribution) == DISTRIBUTION

    @contextmanager
    def timed(self) -> Generator[None]:
        """Count how long its own code takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began

    def fail(self, reason: str) -> None:
        """Mark the plugin as failed and withdraw what it contributed."""
        self.status, self.reason = Status.FAILED, reason
        self.tools, self.filters, self.prompts, self.resources = (), (), (), ()
