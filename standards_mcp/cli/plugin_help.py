"""Remember plugins' commands, so that ``--help`` and a command need not import all plugins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click
from pydantic import TypeAdapter

from standards_mcp.files import keep_text, of_environment
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginKind, Status

_WIDEST: Final = 200
_NO_HELP: Final = "Commands of this plugin."


class _Command(NamedTuple):
    """The command of one version of a plugin; a plugin without commands has an empty name."""

    distribution: str
    version: str
    name: str
    help: str


_COMMANDS: Final = TypeAdapter(dict[str, _Command])


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
            text = about(commands[name]) if name in commands else ""
            info = record.info
            current[record.name] = _Command(info.distribution, info.version, name, text)
    if current != saved:
        keep_text(_file(host), _COMMANDS.dump_json(current, indent=1).decode())


def about(command: click.Command) -> str:
    """Return the short help of a command; of a group, the names of its commands."""
    return command.get_short_help_str(_WIDEST) or _NO_HELP


def owner_of(host: Host, command: str) -> str | None:
    """Return the plugin of a command, which usually has its name; None if it is not known."""
    owners = {saved.name: plugin for plugin, saved in _saved(host).items()}
    return owners.get(command, command if command in host.manager.records else None)


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
    return {command.name: command.help for command in enabled if command and command.name}


def _saved(host: Host) -> dict[str, _Command]:
    """Return the saved commands of the installed versions of plugins."""
    try:
        commands = _COMMANDS.validate_json(_file(host).read_bytes())
    except (OSError, ValueError):
        return {}
    infos = {name: record.info for name, record in host.manager.records.items()}
    return {
        name: command
        for name, command in commands.items()
        if name in infos and command[:2] == (infos[name].distribution, infos[name].version)
    }


def _file(host: Host) -> Path:
    return of_environment(host.state_dir, "commands", ".json")
