"""The installed plugins, as far as their metadata tell; nothing is imported."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import importlib_metadata

from .declarations import RegisteredTool
from .errors import describe_exception
from .plugin import Filter, Plugin, PluginSettings
from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .setting_errors import Mistake
from .settings import Settings
from .tool_settings import first_match

log = logging.getLogger(__name__)

DISTRIBUTION: Final = "standards-mcp"
ENTRY_POINT_GROUP: Final = "standards_mcp.plugins"
PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_SEPARATORS: Final = re.compile(r"[-_.]+")


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
        mistakes: Those in its settings for which it failed.
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
    mistakes: tuple[Mistake, ...] = field(default=(), repr=False)
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


def installed_plugins() -> list[PluginRecord]:
    """Return a record of every plugin entry point in this environment, from metadata alone."""
    found: Any = importlib_metadata
    try:
        points: list[Any] = list(found.entry_points(group=ENTRY_POINT_GROUP))
    except Exception:  # noqa: BLE001  - one distribution's metadata, which may be of any kind
        points = _readable_entry_points()
    return [_record_of(point) for point in points if point.dist is not None]


def _readable_entry_points() -> list[Any]:
    """Return what can be read where the metadata of some distribution is broken."""
    points: dict[str, Iterable[Any]] = {}
    found: Any = importlib_metadata
    for distribution in found.distributions():
        try:
            name = canonical_name(distribution.name)
            points.setdefault(name, distribution.entry_points.select(group=ENTRY_POINT_GROUP))
        except Exception as exc:  # noqa: BLE001  - see `installed_plugins`
            where = getattr(distribution, "_path", "a distribution")
            log.warning("%s is ignored: its metadata cannot be read (%s)", where, exc)
    return [point for group in points.values() for point in group]


def _record_of(point: Any) -> PluginRecord:
    record = PluginRecord(name=point.name, load=point.load)
    try:
        metadata: Any = point.dist.metadata  # read once: each property of `dist` reads it anew
        record.distribution, record.version = metadata["Name"], metadata["Version"]
        record.requires = () if record.is_own else tuple(point.dist.requires or ())
    except Exception as exc:  # noqa: BLE001  - see `installed_plugins`
        record.reason = f"its metadata cannot be read: {describe_exception(exc)}"
    return record


def incompatibility(requires: Iterable[str]) -> str:
    """Return why a plugin with these requirements cannot run in this host, or an empty string."""
    from packaging.requirements import (  # noqa: PLC0415  - costs start-up time
        InvalidRequirement,
        Requirement,
    )

    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonical_name(requirement.name) != DISTRIBUTION:
            continue
        if requirement.marker and not requirement.marker.evaluate():
            continue
        host = importlib_metadata.version(DISTRIBUTION)
        if not requirement.specifier.contains(host, prereleases=True):
            return f"it needs {DISTRIBUTION}{requirement.specifier}, this is {host}"
    return ""


def canonical_name(distribution: str) -> str:
    """Return the one spelling that all spellings of a distribution's name share.

    https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return _SEPARATORS.sub("-", distribution).lower()


def load_order(record: PluginRecord) -> tuple[bool, bool, str, str]:
    """Sort by name, after the host's own plugins: nobody takes over the names of their tools.

    Other servers come last, since their names may change while they run.
    """
    return record.is_server, not record.is_own, record.name, record.distribution


def disabled_reason(record: PluginRecord, settings: Settings) -> str:
    """Return why the configuration keeps a plugin from being imported, or an empty string."""
    section, table = settings.section(record.name), settings.table(record.name)
    if section.enabled is None and not settings.autoload:
        return f"autoload = false; set [{table}] enabled = true"
    if section.enabled is False:
        return f"[{table}] enabled = false"
    if not record.from_table and not is_trusted(record.distribution, settings.trusted):
        return f"trusted has no pattern for {record.distribution!r}"
    return ""


def is_trusted(distribution: str, patterns: Iterable[str]) -> bool:
    """Tell whether a glob names a distribution, in whatever way either of them is spelt."""
    canonical = [canonical_name(pattern) for pattern in patterns]
    return bool(first_match((canonical_name(distribution),), canonical))


def unloadable(record: PluginRecord) -> str:
    """Return why a plugin cannot be imported, as far as metadata tell, or an empty string."""
    if not record.is_server and not PLUGIN_NAME.fullmatch(record.name):
        return "its entry-point name is not lower_snake_case"
    if record.reason or not record.requires:
        return record.reason
    return incompatibility(record.requires)
