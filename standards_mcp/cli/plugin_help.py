"""Remember plugins' commands, so that ``--help`` and a command need not import all plugins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from pydantic import TypeAdapter

from standards_mcp._utils.files import keep_text, of_environment
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, PluginKind, Status

_WIDEST: Final = 200
# The first help must be right before any plugin was loaded; a test compares these lines.
_SHIPPED: Final = {
    "catalog": ("data", "Load standards, look at what is loaded, and rebuild the index."),
    "lookup": (
        "lookup",
        "Show the standards named by each ID: a code such as 3.NF.A.1, a GUID, an ASN id or a URI.",
    ),
    "search": ("search", "Find the standards that fit the activity described by TEXT."),
}
"""The commands of plugins that come with the host, which may not have been loaded yet."""
_NO_HELP: Final = "Commands of this plugin."
_HELPS: Final = TypeAdapter(dict[str, dict[str, str]])


def remember(host: Host, commands: Mapping[str, click.Command]) -> None:
    """Save the names and the help of the loaded plugins' commands, until a plugin is updated.

    A failed plugin is saved without commands, until a command loads it again.
    """
    saved, current = _read(host.state_dir), dict[str, dict[str, str]]()
    for record in host.manager.records.values():
        if record.info.kind is not PluginKind.IMPORTED:
            continue
        if record.command is not None or record.status is Status.FAILED:
            name = record.command or ""
            text = about(commands[name]) if name in commands else ""
            current[record.name] = {**_identity(record.info), "command": name, "help": text}
    if any(saved.get(name) != entry for name, entry in current.items()):
        text = json.dumps({**saved, **current}, indent=1, sort_keys=True)
        keep_text(_file(host.state_dir), text)


def about(command: click.Command) -> str:
    """Return the short help of a command; of a group, the names of its commands."""
    return command.get_short_help_str(_WIDEST) or _NO_HELP


def remembered(host: Host) -> dict[str, tuple[str, str] | None]:
    """Return the command of each plugin and its help; None for a plugin that was never loaded.

    A plugin without a command has an empty name.
    """
    saved = _read(host.state_dir)
    commands: dict[str, tuple[str, str] | None] = {}
    for record in host.manager.records.values():
        entry, shipped = saved.get(record.name, {}), _SHIPPED if record.info.is_own else {}
        commands[record.name] = shipped.get(record.name)
        if _identity(record.info).items() <= entry.items() and "command" in entry:
            commands[record.name] = entry["command"], entry.get("help", "")
    return commands


def owner_of(host: Host, command: str) -> str | None:
    """Return the plugin of a command, if it is known without loading plugins."""
    names = (plugin for plugin, known in remembered(host).items() if known and known[0] == command)
    return next(names, None)


def helps(host: Host) -> dict[str, str] | None:
    """Return the help of each command of an enabled plugin, or None if one was never loaded."""
    records, commands = host.manager.records, remembered(host)
    enabled = [
        commands[name]
        for name, record in records.items()
        if not record.reason and record.info.kind is PluginKind.IMPORTED
    ]
    texts = dict(command for command in enabled if command)
    return {name: texts[name] for name in texts if name} if all(enabled) else None


def _identity(info: PluginInfo) -> dict[str, str]:
    return {"distribution": info.distribution, "version": info.version}


def _read(folder: Path) -> dict[str, dict[str, str]]:
    try:
        return _HELPS.validate_json(_file(folder).read_bytes())
    except (OSError, ValueError):
        return {}


def _file(folder: Path) -> Path:
    return of_environment(folder, "commands", ".json")
