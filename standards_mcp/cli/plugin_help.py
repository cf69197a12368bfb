"""What ``--help`` says of plugins' commands, without importing a plugin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from pydantic import TypeAdapter

from standards_mcp._utils.files import keep_text, of_environment
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, PluginKind

_WIDEST: Final = 200
_SHIPPED: Final = {
    "lookup": "Show the standards named by each ID: a code such as 3.NF.A.1, a GUID, an ASN id or "
    "a URI.",
    "search": "Find the standards that fit the activity described by TEXT.",
}
_UNKNOWN: Final = "Commands of this plugin, if it has any."
_HELPS: Final = TypeAdapter(dict[str, dict[str, str]])


def remember(host: Host, commands: Mapping[str, click.Command]) -> None:
    """Keep what the commands of the loaded plugins are for, until a plugin is updated."""
    known, told = _read(host.state_dir), dict[str, dict[str, str]]()
    for record in host.manager.records.values():
        if record.plugin is not None:
            text = _about(commands[record.name]) if record.name in commands else ""
            told[record.name] = {**_identity(record.info), "help": text}
    if any(known.get(name) != each for name, each in told.items()):
        text = json.dumps({**known, **told}, indent=1, sort_keys=True)
        keep_text(_file(host.state_dir), text)


def _about(command: click.Command) -> str:
    """Return what a command is for; of a group of several, their names."""
    return command.get_short_help_str(_WIDEST) or _UNKNOWN


def helps(host: Host) -> dict[str, str]:
    """Return a line about the commands of each enabled plugin, by the plugin's name.

    It is what was told when they were last loaded. Of a plugin that never was, it is not known
    whether it has commands.
    """
    known = _read(host.state_dir)
    found: dict[str, str] = {}
    for record in host.manager.records.values():
        info, told = record.info, known.get(record.name, {})
        if record.reason or info.kind is PluginKind.SERVER:
            continue
        if _identity(info).items() <= told.items():
            found[record.name] = told.get("help", "")
        else:
            found[record.name] = (_SHIPPED if info.is_own else {}).get(record.name, _UNKNOWN)
    return {name: text for name, text in found.items() if text}


def _identity(info: PluginInfo) -> dict[str, str]:
    return {"distribution": info.distribution, "version": info.version}


def _read(folder: Path) -> dict[str, dict[str, str]]:
    try:
        return _HELPS.validate_json(_file(folder).read_bytes())
    except (OSError, ValueError):
        return {}


def _file(folder: Path) -> Path:
    return of_environment(folder, "commands", ".json")
