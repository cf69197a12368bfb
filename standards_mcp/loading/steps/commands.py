"""Reads the commands that plugins add to the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import click

from standards_mcp.contributions.base import conflict
from standards_mcp.errors import PluginError


def read_commands(
    plugin: str, found: Sequence[object], taken: Collection[str], *, is_own: bool = False
) -> dict[str, click.Command]:
    """Return one command or group under the plugin's name, or nothing if it adds no command.

    Args:
        taken: The names of the host's own commands.
        is_own: Whether the plugin comes with the host. The only command of such a plugin may have
            another name.

    Raises:
        PluginError: Something is not a command, or the plugin's name is taken.
        PluginConflictError: Two commands have the same name.
    """
    commands: list[click.Command] = []
    for item in found:
        if not isinstance(item, click.Command):
            raise PluginError(plugin, f"register_commands returned a {type(item).__name__}")
        commands.append(item)
    if commands and plugin in taken:
        why = f"`standards-mcp {plugin}` is the host's own, so a plugin {plugin!r} adds no commands"
        raise PluginError(plugin, why)
    names = [item.name for item in commands]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise conflict(plugin, plugin, f"command {twice!r}")
    if names == [plugin] or (is_own and len(names) == 1):
        return {names[0] or plugin: commands[0]}
    if not commands:
        return {}
    told = f"Commands: {', '.join(sorted(filter(None, names)))}."
    about = f"Commands of the plugin {plugin}."
    return {plugin: click.Group(plugin, commands=commands, help=about, short_help=told)}
