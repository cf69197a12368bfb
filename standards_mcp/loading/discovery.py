"""The installed plugins, as far as their metadata tell; nothing is imported."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import importlib_metadata

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.trust import canonical_name, is_trusted

from .records import DISTRIBUTION, PluginInfo, PluginKind

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "standards_mcp.plugins"
PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def installed_plugins() -> list[PluginInfo]:
    """Return every plugin entry point in this environment, from metadata alone."""
    found: Any = importlib_metadata
    try:
        points: list[Any] = list(found.entry_points(group=ENTRY_POINT_GROUP))
    except Exception:  # noqa: BLE001  - one distribution's metadata, which may be of any kind
        points = _readable_entry_points()
    return [_info_of(point) for point in points if point.dist is not None]


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


def _info_of(point: Any) -> PluginInfo:
    info = PluginInfo(name=point.name, load=point.load)
    try:
        metadata: Any = point.dist.metadata  # read once: each property of `dist` reads it anew
        info = replace(info, distribution=metadata["Name"], version=metadata["Version"])
        return info if info.is_own else replace(info, requires=tuple(point.dist.requires or ()))
    except Exception as exc:  # noqa: BLE001  - see `installed_plugins`
        return replace(info, error=f"its metadata cannot be read: {describe_exception(exc)}")


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


def load_order(info: PluginInfo) -> tuple[bool, bool, str, str]:
    """Sort by name, after the host's own plugins: nobody takes over the names of their tools.

    Other servers come last, since their names may change while they run.
    """
    is_server = info.kind is PluginKind.SERVER
    return is_server, not info.is_own, info.name, info.distribution


def disabled_reason(info: PluginInfo, settings: Settings) -> str:
    """Return why the configuration keeps a plugin from being imported, or an empty string."""
    section, table = settings.section(info.name), settings.table(info.name)
    if section.enabled is None and not settings.autoload:
        return f"autoload = false; set [{table}] enabled = true"
    if section.enabled is False:
        return f"[{table}] enabled = false"
    if info.is_installed and not is_trusted(info.distribution, settings.trusted):
        return f"trusted has no pattern for {info.distribution!r}"
    return ""


def unloadable(info: PluginInfo) -> str:
    """Return why a plugin cannot be imported, as far as metadata tell, or an empty string."""
    if info.kind is not PluginKind.SERVER and not PLUGIN_NAME.fullmatch(info.name):
        return "its entry-point name is not lower_snake_case"
    return info.error or incompatibility(info.requires)
