"""The installed plugins, as far as their metadata tell; nothing is imported."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any, Final

import importlib_metadata

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.trust import canonical_name, is_trusted

from .records import DISTRIBUTION, PluginRecord

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "standards_mcp.plugins"

PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


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


def unloadable(record: PluginRecord) -> str:
    """Return why a plugin cannot be imported, as far as metadata tell, or an empty string."""
    if not record.is_server and not PLUGIN_NAME.fullmatch(record.name):
        return "its entry-point name is not lower_snake_case"
    if record.reason or not record.requires:
        return record.reason
    return incompatibility(record.requires)
