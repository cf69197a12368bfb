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
    """Keep the names and the help of the commands of loaded plugins, until a plugin is updated.

    A plugin that failed is kept as one without commands, until a command loads it again.
    """
    known, loaded = _read(host.state_dir), dict[str, dict[str, str]]()
    for record in host.manager.records.values():
        if record.info.kind is not PluginKind.IMPORTED:
            continue
        if record.command is not None or record.status is Status.FAILED:
            name = record.command or ""
            text = about(commands[name]) if name in commands else ""
            loaded[record.name] = {**_identity(record.info), "command": name, "help": text}
    if any(known.get(name) != each for name, each in loaded.items()):
        text = json.dumps({**known, **loaded}, indent=1, sort_keys=True)
        keep_text(_file(host.state_dir), text)


def about(command: click.Command) -> str:
    """Return the short help of a command; of a group, the names of its commands."""
    return command.get_short_help_str(_WIDEST) or _NO_HELP


def helps(host: Host) -> dict[str, str] | None:
    """Return the remembered help of the enabled plugins that have commands, by command.

    Returns:
        None if a plugin is enabled that was never loaded.
    """
    known = _read(host.state_dir)
    found: dict[str, str] = {}
    for record in host.manager.records.values():
        if record.reason or record.info.kind is not PluginKind.IMPORTED:
            continue
        remembered = _remembered(record.info, known)
        if remembered is None:
            return None
        name, text = remembered
        found[name] = text
    return {name: text for name, text in found.items() if name}


def owner_of(host: Host, command: str) -> str | None:
    """Return the plugin that has a command, as far as is known without loading plugins."""
    known = _read(host.state_dir)
    for record in host.manager.records.values():
        remembered = _remembered(record.info, known)
        if remembered and remembered[0] == command:
            return record.name
    return None


def _remembered(info: PluginInfo, known: Mapping[str, Mapping[str, str]]) -> tuple[str, str] | None:
    """Return the name and the help of a plugin's command; None if it was never loaded."""
    entry = known.get(info.name, {})
    if _identity(info).items() <= entry.items() and "command" in entry:
        return entry["command"], entry.get("help", "")
    return _SHIPPED.get(info.name) if info.is_own else None


def _identity(info: PluginInfo) -> dict[str, str]:
    return {"distribution": info.distribution, "version": info.version}


def _read(folder: Path) -> dict[str, dict[str, str]]:
    try:
        return _HELPS.validate_json(_file(folder).read_bytes())
    except (OSError, ValueError):
        return {}


def _file(folder: Path) -> Path:
    return of_environment(folder, "commands", ".json")
