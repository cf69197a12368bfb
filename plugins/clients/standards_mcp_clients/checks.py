"""Check the clients' entries of this server: their programs, configuration files and variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from standards_mcp.commands import Finding, ServerCommand

from .clients import CLIENTS, Client, Entry, System
from .entries import (
    ClientFileError,
    configuration_of,
    install_command,
    missing_variables,
    options_of,
    own_servers,
    service_options,
)

_MISSING_FILE_FIX: Final = (
    "Put the file back, or correct its path in the entry; without it, the server does not start."
)


def check_clients(invocation: object, server: ServerCommand) -> Iterator[Finding]:
    """Check the entries of this server in the clients' files, for ``standards-mcp doctor``."""
    del invocation
    system = System.current()
    for client in CLIENTS:
        file = client.file(system)
        try:
            entries = own_servers(client, file)
        except ClientFileError as exc:
            yield Finding(client.title, "error", str(exc), "Correct the file, or move it away.")
            continue
        for name, entry in entries.items():
            finding = _check_entry(client, name, entry)
            if finding.level == "ok":
                finding = _check_variables(client, name, entry, server) or finding
            yield finding


def _check_entry(client: Client, name: str, entry: Entry) -> Finding:
    command_line = client.command_line(entry)
    command, file = command_line[0], configuration_of(client, entry)
    if file is not None and not file.is_file():
        # No advice to install again: without the file, the server would expose more.
        message = f"{name!r} names the configuration {file}, which does not exist"
        return Finding(client.title, "error", message, _MISSING_FILE_FIX)
    command_to_repeat = install_command(
        client, name, options_of(command_line), after=service_options(command_line)
    )
    fix = f"Run `{command_to_repeat}` again."
    if not Path(command).is_absolute():
        message = f"{name!r} starts {command!r}, which the client may not find"
        return Finding(client.title, "warning", message, fix)
    if not Path(command).exists():
        return Finding(
            client.title, "error", f"{name!r} starts {command}, which does not exist", fix
        )
    return Finding(client.title, "ok", f"{name!r} starts {command}")


def _check_variables(
    client: Client, name: str, entry: Entry, server: ServerCommand
) -> Finding | None:
    """Return a finding if the server of an entry lacks variables that are set here.

    An entry with another configuration file is skipped: the variables here are not meant for it.
    Nor are they meant for an entry that connects to a service.
    """
    if service_options(client.command_line(entry)):
        return None
    file = dict(options_of(server.options)).get("--config")
    missing = missing_variables(client, entry, server.variables)
    if not missing or configuration_of(client, entry) != (Path(file) if file else None):
        return None
    # With the options of the entry: without them, the server would expose more.
    command = install_command(client, name, options_of(client.command_line(entry)), missing)
    message = f"{name!r} starts a server without these variables of .env or the environment: "
    fix = f"Run `{command}` here to pass them on; or do nothing, if the server needs none of them."
    return Finding(client.title, "warning", message + ", ".join(missing), fix)
