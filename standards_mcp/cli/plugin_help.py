"""Remember plugins' commands, so that ``--help`` and a command need not import all plugins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import click
from pydantic import TypeAdapter

from standards_mcp.files import keep_text, of_environment
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, PluginKind, Status

_WIDEST: Final = 200
# A plugin that is disabled may never have been loaded, and its command then says so.
_SHIPPED: Final = {"data": "catalog"}
"""The plugins that come with the host and have a command of another name."""
_NO_HELP: Final = "Commands of this plugin."
_Commands: TypeAlias = dict[str, tuple[str, str]]
"""The names and the help of commands; a plugin without commands has an empty name."""
_COMMANDS: Final = TypeAdapter(_Commands)


def remember(host: Host, commands: Mapping[str, click.Command]) -> None:
    """Save the names and the help of the loaded plugins' commands, until a plugin is updated.

    A failed plugin is saved without commands, until a command loads it again.
    """
    saved = _saved(host)
    current = dict(saved)
    for record in host.manager.records.values():
        is_read = record.command is not None or record.status is Status.FAILED
        if record.info.kind is PluginKind.IMPORTED and is_read:
            name = record.command or ""
            current[record.name] = name, about(commands[name]) if name in commands else ""
    if current != saved:
        records = host.manager.records
        entries = {_version(records[name].info): entry for name, entry in current.items()}
        keep_text(_file(host), _COMMANDS.dump_json(entries, indent=1).decode())


def about(command: click.Command) -> str:
    """Return the short help of a command; of a group, the names of its commands."""
    return command.get_short_help_str(_WIDEST) or _NO_HELP


def owner_of(host: Host, command: str) -> str | None:
    """Return the plugin of a command, which usually has its name; None if it is not known."""
    owners = _SHIPPED | {name: plugin for plugin, (name, _) in _saved(host).items()}
    plugin = owners.get(command, command)
    return plugin if plugin in host.manager.records else None


def helps(host: Host) -> dict[str, str] | None:
    """Return the help of each command of an enabled plugin, or None if one was never loaded."""
    saved = _saved(host)
    enabled = [
        saved.get(record.name)
        for record in host.manager.records.values()
        if not record.reason and record.info.kind is PluginKind.IMPORTED
    ]
    if None in enabled:
        return None
    return {name: text for name, text in filter(None, enabled) if name}


def _saved(host: Host) -> _Commands:
    """Return the saved commands of the installed versions of plugins."""
    try:
        entries = _COMMANDS.validate_json(_file(host).read_bytes())
    except (OSError, ValueError):
        return {}
    versions = {name: _version(record.info) for name, record in host.manager.records.items()}
    return {name: entries[version] for name, version in versions.items() if version in entries}


def _version(info: PluginInfo) -> str:
    return f"{info.name} {info.version} of {info.distribution}"


def _file(host: Host) -> Path:
    return of_environment(host.state_dir, "commands", ".json")
