"""What to do about a plugin that fails, as far as its record and the configuration tell."""

from __future__ import annotations

from collections.abc import Iterator

from .discovery import PluginRecord
from .programs import why_not_found
from .setting_layers import key_name
from .settings import Settings


def remedy(record: PluginRecord, settings: Settings, otherwise: str) -> str:
    """Return what to do about a plugin that fails.

    Args:
        otherwise: What to do where nothing is known but that it fails.
    """
    fixes = "; ".join(dict.fromkeys(_fixes(record, settings))) or otherwise
    disable = f"disable it: `standards-mcp plugins disable {record.name}`."
    return f"{fixes[:1].upper()}{fixes[1:]}, or {disable}"


def _fixes(record: PluginRecord, settings: Settings) -> Iterator[str]:
    for each in record.mistakes:
        yield each.fix or f"correct {key_name(each.path)}"
    server, section = settings.servers.get(record.name), settings.section(record.name)
    if server and server.command and "PATH" not in server.env:
        if why_not_found(server.command, None, server.cwd):
            key = key_name(("servers", record.name, "command"))
            yield f"set {key} to the whole path of a program that is there"
    elif section.python and why_not_found(section.python, None):
        key = key_name(("plugins", record.name, "python"))
        yield f"set {key} to the whole path of an interpreter that is there"
