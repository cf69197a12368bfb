"""Remember the help of plugins' commands, so that ``--help`` need not import the plugins."""

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
    "lookup": "Show the standards named by each ID: a code such as 3.NF.A.1, a GUID, an ASN id or "
    "a URI.",
    "search": "Find the standards that fit the activity described by TEXT.",
}
_NO_HELP: Final = "Commands of this plugin."
_HELPS: Final = TypeAdapter(dict[str, dict[str, str]])


def remember(host: Host, commands: Mapping[str, click.Command]) -> None:
    """Keep the help of the commands of the loaded plugins, until a plugin is updated.

    A plugin that failed is kept as one without commands, until a command loads it again.
    """
    known, told = _read(host.state_dir), dict[str, dict[str, str]]()
    for record in host.manager.records.values():
        if record.info.kind is not PluginKind.IMPORTED:
            continue
        if record.plugin is not None or record.status is Status.FAILED:
            text = about(commands[record.name]) if record.name in commands else ""
            told[record.name] = {**_identity(record.info), "help": text}
    if any(known.get(name) != each for name, each in told.items()):
        text = json.dumps({**known, **told}, indent=1, sort_keys=True)
        keep_text(_file(host.state_dir), text)


def about(command: click.Command) -> str:
    """Return the short help of a command; of a group, the names of its commands."""
    return command.get_short_help_str(_WIDEST) or _NO_HELP


def helps(host: Host) -> dict[str, str] | None:
    """Return the remembered help of the enabled plugins that have commands, by plugin.

    Returns:
        None if a plugin is enabled that was never loaded.
    """
    known = _read(host.state_dir)
    found: dict[str, str] = {}
    for record in host.manager.records.values():
        info, told = record.info, known.get(record.name, {})
        if record.reason or info.kind is not PluginKind.IMPORTED:
            continue
        if _identity(info).items() <= told.items():
            found[record.name] = told.get("help", "")
        elif info.is_own and record.name in _SHIPPED:
            found[record.name] = _SHIPPED[record.name]
        else:
            return None
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
