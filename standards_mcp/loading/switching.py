"""Enable and disable plugins in the configuration file."""

from __future__ import annotations

from standards_mcp.config.edits import (
    settings_without_profile,
    with_values,
    without_plugin_disabled,
)
from standards_mcp.config.loading import Sources
from standards_mcp.config.models.settings import Settings

from .discovery import disabled_reason
from .records import PluginInfo, PluginKind


def with_plugin_switched(text: str, sources: Sources, plugin: PluginInfo, *, enabled: bool) -> str:
    """Return the text of the configuration file with a plugin or a server enabled or disabled.

    To enable it, ``enabled = false`` is removed; if that is not enough, it gets ``enabled = true``.
    """
    table = "servers" if plugin.kind is PluginKind.SERVER else "plugins"
    # With `autoload = false`, the plugin needs `enabled = true`.
    shorter = without_plugin_disabled(text, plugin.name, table=table) if enabled else text
    if shorter != text and not disabled_reason(plugin, settings_without_profile(sources, shorter)):
        return shorter
    return with_values(text, {(table, plugin.name, "enabled"): enabled})


def newly_loaded(plugin: PluginInfo, before: Settings, after: Settings) -> list[str]:
    """List, in words, all of a plugin that only the second settings load."""
    if not disabled_reason(plugin, before) or disabled_reason(plugin, after):
        return []
    kind = "server" if plugin.kind is PluginKind.SERVER else "plugin"
    return [f"all contributions of the {kind} {plugin.name!r}, whose code will run"]
