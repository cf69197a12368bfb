"""What plugins add to the command line."""

from __future__ import annotations

from collections.abc import Sequence

import click

from standards_mcp.contributions.base import conflict
from standards_mcp.errors import PluginError


def read_commands(plugin: str, found: Sequence[object]) -> dict[str, click.Command]:
    """Return what a plugin adds to the command line: one command or group of its name, or nothing.

    Raises:
        PluginError: Something is no command.
        PluginConflictError: Two commands have one name.
    """
    commands: list[click.Command] = []
    for item in found:
        if not isinstance(item, click.Command):
            raise PluginError(plugin, f"register_commands returned a {type(item).__name__}")
        commands.append(item)
    names = [item.name for item in commands]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise conflict(plugin, plugin, f"command {twice!r}")
    if names == [plugin]:
        return {plugin: commands[0]}
    return {plugin: click.Group(plugin, commands=commands)} if commands else {}
