"""Check the programs, addresses and folders that the configuration names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .errors import Problem
from .layers import key_name
from .models.settings import Settings

_ADDRESSES: Final = ("https://", "http://", "${")


def check_programs(settings: Settings) -> Iterator[Problem]:
    """Yield the programs of enabled servers, and interpreters of plugins, that do not exist.

    A server with a PATH of its own is left out: its program is looked for there when it starts.
    """
    named = [
        (("servers", name, "command"), server.command, "a program", server.cwd)
        for name, server in settings.servers.items()
        if server.enabled and server.command and "PATH" not in server.env
    ] + [
        (("plugins", name, "python"), plugin.python, "an interpreter", None)
        for name, plugin in settings.plugins.items()
        if plugin.enabled is not False and plugin.python
    ]
    for path, program, what, folder in named:
        if why := why_not_found(program, None, folder):
            fix = f"set {key_name(path)} to the whole path of {what} that is there"
            yield Problem(path, f"{program!r} cannot be started: {why}", fix)


def check_addresses(settings: Settings) -> Iterator[Problem]:
    """Yield the addresses of enabled servers that are none; those with a variable are not known."""
    for name, server in settings.servers.items():
        if server.enabled and server.url and not server.url.startswith(_ADDRESSES):
            yield Problem(("servers", name, "url"), "input should begin with https:// or http://")


def check_folders(settings: Settings) -> Iterator[Problem]:
    """Yield the folders of data that cannot be opened and, since their parent is missing, made."""
    named = {("catalog", "path"): settings.catalog.path, ("state_dir",): settings.state_dir}
    for path, folder in named.items():
        if folder is None or folder.is_dir():
            continue
        if folder.exists():
            why = f"{folder} is no folder"
        elif not folder.parent.is_dir():
            why = f"there is no folder {folder.parent}, in which it would be made"
        else:
            continue
        yield Problem(path, f"{why}; correct the path, or make the folder", f"set {key_name(path)}")


def why_not_found(program: str, path: str | None, folder: Path | None = None) -> str:
    """Return why a program cannot be started and what to do, or an empty string if it is there.

    Args:
        path: Where programs are looked for, as PATH has it; None for that of this process.
        folder: Where it is started; by default the working directory.
    """
    if folder and not folder.is_dir():
        return f"its cwd {folder} is no folder; make it, or correct cwd"
    by_name = not os.path.dirname(program)  # noqa: PTH120  - `Path` drops the dot of ./server
    path_or_name = program if by_name else os.path.join(folder or os.curdir, program)  # noqa: PTH118
    if shutil.which(path_or_name, path=path):
        return ""
    if by_name:
        return _why_not_on_path(program, path)
    if Path(path_or_name).exists():
        return (
            f"{path_or_name} is no program; make it executable, or name what runs it as the "
            "command and the file among its arguments"
        )
    if Path(program).is_absolute():
        return "it is not there; correct its path, or install it"
    where = str(folder) if folder else f"{Path.cwd()}, which is where this host runs"
    return f"it is not in {where}; give its whole path"


def _why_not_on_path(program: str, path: str | None) -> str:
    first, _, rest = program.partition(" ")
    if rest and shutil.which(first, path=path):
        return f"no program has this name; write {first!r} alone, and the rest as a list into args"
    looked_in = os.environ.get("PATH", os.defpath) if path is None else path
    return (
        f"no such program is on PATH, which is {looked_in} here and may be another one where a "
        "desktop client starts the host; give its whole path, or install it"
    )
