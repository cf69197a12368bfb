"""Switches for tools and plugins: what they do, and what must be confirmed first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from standards_mcp.transports import (
    Host,
    PluginRecord,
    RegisteredTool,
    ReloadOptions,
    Settings,
    Status,
    disabled_reason,
    gained,
    newly_loaded,
    with_plugin_switched,
    with_tool_switched,
)

from .actions import RefusedError
from .controls import ConfigChange

_LOADED = (Status.REGISTERED, Status.STARTED)


def tool_switch(host: Host, declared: str, *, enabled: bool) -> ConfigChange:
    """Return the change that serves a tool, or stops serving it.

    Args:
        declared: The declared name of the tool.

    Raises:
        RefusedError: There is no such tool.
    """
    item = next((item for item in host.visible().tools if item.declared == declared), None)
    if item is None:
        raise RefusedError(f"There is no tool {declared!r} any more.")
    tool: RegisteredTool = item

    def review(before: Settings, after: Settings) -> list[str]:
        added = gained(host.manager.contributions, before, after)
        # Pressing the button confirms the tool itself.
        more = ", ".join(name for name in added if name != tool.published)
        return [f"This also serves {more}."] if more else []

    action = "enable" if enabled else "disable"
    return ConfigChange(
        f"{action.capitalize()} the tool {tool.published}?",
        {"action": f"tools {action}", "tool": declared},
        partial(with_tool_switched, declared=declared, names=tool.names, enabled=enabled),
        review,
    )


def plugin_switch(
    host: Host, reloading: ReloadOptions, name: str, *, enabled: bool
) -> ConfigChange:
    """Return the change that enables or disables a plugin or another MCP server.

    Raises:
        RefusedError: There is no such plugin.
    """
    record = host.manager.records.get(name)
    if record is None:
        raise RefusedError(f"There is no plugin {name!r}.")
    info, is_loaded = record.info, record.status in _LOADED

    def review(before: Settings, after: Settings) -> list[str]:
        reason = disabled_reason(info, after)
        if bool(reason) == enabled:
            why = reason or "a variable or --set overrides the file"
            state = "not be loaded" if enabled else "be enabled"
            raise RefusedError(f"Nothing is changed: {name} would still {state}: {why}.")
        if not enabled:
            return _effects_on_dependents(host, name, after)
        if is_loaded:
            served = ", ".join(gained(host.manager.contributions, before, after))
            return [
                f"This serves at once: {served or 'no tool, prompt or resource'}.",
                "Routes, pages, filters and wrappers of calls of the plugin count again, too.",
            ]
        return [
            f"From its next start on, the service has {contributions}. Its tools are known then."
            for contributions in newly_loaded(info, before, after)
        ]

    action = "enable" if enabled else "disable"
    return ConfigChange(
        f"{action.capitalize()} {name}?",
        {"action": f"plugins {action}", "plugin": name},
        partial(with_plugin_switched, sources=reloading.sources, plugin=info, enabled=enabled),
        review,
    )


def _effects_on_dependents(host: Host, plugin: str, after: Settings) -> list[str]:
    """Return the effects on the plugins that need a plugin, which is disabled."""
    names = [
        name
        for name in host.manager.services.dependents(plugin)
        if not disabled_reason(host.manager.records[name].info, after)
    ]
    if required := [name for name in names if after.strict or after.section(name).required]:
        return [f"The service will not start again: {', '.join(required)} cannot do without it."]
    if names:
        return [f"The next start also disables the plugins that need it: {', '.join(names)}."]
    return []


def plugin_action(record: PluginRecord, settings: Settings) -> str:
    """Return the action of a plugin's switch: ``disable``, ``enable``, or empty without a switch.

    It has none if other keys, such as ``trusted``, would keep it disabled.
    """
    if not disabled_reason(record.info, settings):
        return "disable"
    table = "servers" if record.name in settings.servers else "plugins"
    sections = cast("Mapping[str, Any]", getattr(settings, table))
    section = sections.get(record.name) or settings.section(record.name)
    enabled = section.model_copy(update={"enabled": True})
    switched = settings.model_copy(update={table: {**sections, record.name: enabled}})
    return "" if disabled_reason(record.info, switched) else "enable"


def waits_for_restart(record: PluginRecord, settings: Settings) -> bool:
    """True if a plugin was disabled when the service started, and is enabled since."""
    never_imported = record.status is Status.DISABLED and record.settings_type is None
    return never_imported and not disabled_reason(record.info, settings)
