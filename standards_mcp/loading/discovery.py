"""Find the installed plugins by their metadata, without importing them."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Final

import importlib_metadata

from standards_mcp._utils.installation import HOST, canonical, install_command, own_plugins
from standards_mcp._utils.text import describe_exception, did_you_mean
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import first_match
from standards_mcp.errors import ConfigError

from .records import PluginInfo, PluginKind

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "standards_mcp.plugins"
_REQUIRED_NAME: Final = re.compile(r"[\w.-]+")
_RELEASE: Final = re.compile(r"\d{1,9}(\.\d{1,9})*")
_BOUNDS: Final = re.compile(rf"[\w.-]+(\[[\w,.-]*\])?((,?(<|>=){_RELEASE.pattern})+)")
PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def installed_plugins() -> list[PluginInfo]:
    """Return every plugin entry point in this environment, from metadata alone."""
    return [_info_of(point) for point in entry_points(ENTRY_POINT_GROUP)]


def entry_points(group: str) -> list[Any]:
    """Return the entry points of a group, from all distributions whose metadata can be read."""
    metadata: Any = importlib_metadata
    try:
        points: list[Any] = list(metadata.entry_points(group=group))
    except Exception:  # noqa: BLE001  - damaged metadata of a distribution may raise anything
        points = _readable_entry_points(group)
    return [point for point in points if point.dist is not None]


def _readable_entry_points(group: str) -> list[Any]:
    points: dict[str, Iterable[Any]] = {}
    metadata: Any = importlib_metadata
    for distribution in metadata.distributions():
        try:
            # Of distributions with one name, the first on the path counts, as for imports.
            name = canonical(distribution.name)
            points.setdefault(name, distribution.entry_points.select(group=group))
        except Exception as exc:  # noqa: BLE001  - see `entry_points`
            where = getattr(distribution, "_path", "a distribution")
            log.warning("%s is ignored: its metadata cannot be read (%s)", where, exc)
    return [point for listed in points.values() for point in listed]


def _info_of(point: Any) -> PluginInfo:
    package = str(point.value).partition(":")[0].partition(".")[0].strip()
    info = PluginInfo(name=point.name, load=point.load, package=package)
    try:
        fields: Any = point.dist.metadata  # read once: each property of `dist` reads it anew
        info = replace(info, distribution=fields.get("Name", ""), version=fields.get("Version", ""))
        if not (info.distribution and info.version):
            return replace(info, error="its metadata cannot be read: they lack a name or a version")
        requires = () if info.is_own else tuple(fields.get_all("Requires-Dist") or ())
        return replace(info, requires=requires)
    except Exception as exc:  # noqa: BLE001  - see `entry_points`
        return replace(info, error=f"its metadata cannot be read: {describe_exception(exc)}")


def host_version() -> str:
    """Return the version of the host's distribution."""
    return importlib_metadata.version(HOST)


def incompatibility(requires: Iterable[str], host: str) -> str:
    """Return why a plugin with these requirements cannot run in a host of this version, or ""."""
    for text in requires:
        name = _REQUIRED_NAME.match(text)
        if not name or canonical(name[0]) != HOST or _is_plainly_met(text, host):
            continue
        from packaging import requirements  # noqa: PLC0415  - costs start-up time

        try:
            requirement = requirements.Requirement(text)
        except requirements.InvalidRequirement:
            continue
        if requirement.marker and not requirement.marker.evaluate():
            continue
        if not requirement.specifier.contains(host, prereleases=True):
            return f"it needs {HOST}{requirement.specifier}, this is {host}"
    return ""


def _is_plainly_met(requirement: str, host: str) -> bool:
    """True if a requirement with bounds only, such as ``standards-mcp<1,>=0.1``, is met.

    False means that `packaging` has to find out.
    """
    if not (bounds := _BOUNDS.fullmatch(requirement)) or not _RELEASE.fullmatch(host):
        return False
    pairs = re.findall(r"(<|>=)([^,<>]+)", bounds[2])
    return all((_numbers(host) >= _numbers(bound)) is (sign == ">=") for sign, bound in pairs)


def _numbers(release: str) -> list[int]:
    return [int(part) for part in re.sub(r"(\.0+)+$", "", release).split(".")]


def load_order(info: PluginInfo) -> tuple[bool, bool, str, str]:
    """Return a sort key: the host's own plugins come first, to keep the names of their tools.

    Other plugins follow by name. Servers come last, because their tools may change while they run.
    """
    is_server = info.kind is PluginKind.SERVER
    return is_server, not info.is_own, info.name, info.distribution


def check_sections(loaded: LoadedSettings, known: Collection[str]) -> None:
    """Check that every ``[plugins.NAME]`` table is for an installed plugin.

    Args:
        known: The names of the installed plugins and of the configured servers.

    Raises:
        ConfigError: A table is for a server or an unknown plugin. If it were ignored, a misspelt
            ``[plugins.NAME]`` with ``enabled = false`` would have no effect.
    """
    for name in loaded.settings.plugins:
        if name in loaded.settings.servers:
            where = loaded.layers.where(("plugins", name))
            raise ConfigError(f"{where}: it is a server; write its keys in [servers.{name}]")
        if name not in known:
            where = loaded.layers.origin(("plugins", name)) or "settings"
            hint = install_hint(name, known)
            raise ConfigError(f"{where}: [plugins.{name}]: no such plugin is installed{hint}")


def install_hint(name: str, known: Collection[str]) -> str:
    """Return how to install a plugin of this project; for other names, suggest *known* ones."""
    if name in own_plugins():
        return f"; run `{install_command(f'{HOST}-{name}')}`"
    return did_you_mean(name, known) or f"; installed: {', '.join(known) or 'none'}"


def disabled_reason(info: PluginInfo, settings: Settings) -> str:
    """Return why the configuration disables a plugin, or an empty string."""
    section, table = settings.section(info.name), settings.table(info.name)
    if section.enabled is None and not settings.autoload:
        return f"autoload = false; set [{table}] enabled = true"
    if section.enabled is False:
        return f"[{table}] enabled = false"
    names = (canonical(info.distribution),)
    if info.is_installed and not first_match(names, map(canonical, settings.trusted)):
        return f"trusted has no pattern for {info.distribution!r}"
    return ""


def why_not_loadable(info: PluginInfo, host: str) -> str:
    """Return why a plugin cannot be imported, by its metadata, or an empty string."""
    if info.error:
        return info.error
    if info.kind is not PluginKind.SERVER and not PLUGIN_NAME.fullmatch(info.name):
        return "its entry-point name is not lower_snake_case"
    return incompatibility(info.requires, host)
