"""Save the help of plugins' commands, so that ``--help`` need not import all plugins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import click
from pydantic import TypeAdapter

from standards_mcp.files import keep_text, of_environment
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, PluginKind, Status

_MAX_HELP_WIDTH: Final = 200
# Needed if the plugin is disabled and was never loaded: its command then reports that.
_COMMAND_OWNERS: Final = {"data": "catalog"}
"""Plugins that come with the host, by commands that have another name."""
_NO_HELP: Final = "Commands of this plugin."
_PluginCommands: TypeAlias = dict[str, tuple[str, str]]
"""The name and the help of each plugin's command; the name is empty without a command."""
_COMMANDS: Final = TypeAdapter(_PluginCommands)


def save_help(host: Host, commands: Mapping[str, click.Command]) -> None:
    """Save the names and the help of the loaded plugins' commands, by versions of plugins.

    A failed plugin is saved without a command, until it is loaded again.
    """
    saved = _saved_commands(host)
    current = dict(saved)
    for record in host.manager.records.values():
        is_known = record.command is not None or record.status is Status.FAILED
        if record.info.kind is PluginKind.IMPORTED and is_known:
            name = record.command or ""
            current[record.name] = name, short_help(commands[name]) if name in commands else ""
    if current != saved:
        records = host.manager.records
        entries = {_version_key(records[name].info): entry for name, entry in current.items()}
        keep_text(_file(host), _COMMANDS.dump_json(entries, indent=1).decode())


def short_help(command: click.Command) -> str:
    """Return the help of a command in one line."""
    return command.get_short_help_str(_MAX_HELP_WIDTH) or _NO_HELP


def owner_of(host: Host, command: str) -> str | None:
    """Return the plugin of a command, by default the one with its name, or None."""
    owners = _COMMAND_OWNERS | {name: plugin for plugin, (name, _) in _saved_commands(host).items()}
    plugin = owners.get(command, command)
    return plugin if plugin in host.manager.records else None


def help_texts(host: Host) -> dict[str, str] | None:
    """Return the help of enabled plugins' commands, or None if a plugin was never loaded."""
    saved = _saved_commands(host)
    enabled = [
        saved.get(record.name)
        for record in host.manager.records.values()
        if not record.reason and record.info.kind is PluginKind.IMPORTED
    ]
    if None in enabled:
        return None
    return {name: text for name, text in filter(None, enabled) if name}


def _saved_commands(host: Host) -> _PluginCommands:
    """Return the saved commands of the installed versions of plugins."""
    try:
        entries = _COMMANDS.validate_json(_file(host).read_bytes())
    except (OSError, ValueError):
        return {}
    versions = {name: _version_key(record.info) for name, record in host.manager.records.items()}
    return {name: entries[version] for name, version in versions.items() if version in entries}


def _version_key(info: PluginInfo) -> str:
    return f"{info.name} {info.version} of {info.distribution}"


def _file(host: Host) -> Path:
    return of_environment(host.state_dir, "commands", ".json")
