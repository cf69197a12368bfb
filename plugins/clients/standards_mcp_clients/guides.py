"""How each client is connected to a service, for a page on which people look it up."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .clients import CLIENTS, DEFAULT_NAME, IMPORTING, Client, System
from .entries import IMPORTED_FILE, snippet

_SYSTEMS: Final = {"Linux": "linux", "macOS": "darwin", "Windows": "win32"}


@dataclass(frozen=True, slots=True)
class ServiceGuide:
    """How one client is connected to a service.

    Attributes:
        command: The command that does it, or "" if the client has no file for it to edit.
        entry: The entry to paste, or "" if only the command can make it.
        files: The client's files of servers, each by the names of its systems; empty if the users
            of the client import the entry.
        step: The next step for the user.
    """

    key: str
    title: str
    command: str
    entry: str
    files: Mapping[str, str]
    step: str


def service_guides(url: str, variable: str) -> Sequence[ServiceGuide]:
    """Return a guide for each client.

    Args:
        url: The address of the service.
        variable: The environment variable with the user's token; "": they sign in with the client.
    """
    return [_guide(client, url, variable) for client in (*CLIENTS, *IMPORTING)]


def _guide(client: Client, url: str, variable: str) -> ServiceGuide:
    entry = client.service(DEFAULT_NAME, url, variable) if client.service else None
    files = _files(client)
    suffix = Path(next(iter(files.values()), IMPORTED_FILE))
    how = ["--token-env", variable] if variable else ["--login"]
    command = ["standards-mcp", "install", client.key, "--url", url, *how]
    # Without its own way to a service, a client cannot sign in, but it can start a bridge.
    is_possible = bool(variable) or entry is not None
    steps = [client.after] if is_possible else []
    return ServiceGuide(
        key=client.key,
        title=client.title,
        command=shlex.join(command) if is_possible else "",
        entry=snippet(client, suffix, DEFAULT_NAME, entry) if entry else "",
        files=files,
        step=" ".join(steps if variable else [*steps, client.sign_in]),
    )


def _files(client: Client) -> dict[str, str]:
    """Return the file of a user's servers by the names of the systems that have it there."""
    if client.settings is None:
        return {}
    home = Path("~")
    systems: dict[str, list[str]] = {}
    for title, platform in _SYSTEMS.items():
        file = client.settings(System(platform, home, {}, home)).as_posix()
        systems.setdefault(file, []).append(title)
    return {", ".join(titles): file for file, titles in systems.items()}
