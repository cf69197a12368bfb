"""Compute the fingerprint of a start.

If it is equal to the last one, the host offers the same tools, prompts and resources. These count:

* Python and its import path,
* the metadata of installed packages, and the files of editable plugins,
* the environment variables of the host and of plugins, and those that determine the user's folders,
* the files of configuration and state.

`PATH` and the code of editable libraries do not count; see docs/decisions.md. Only salted hashes
are stored, so no secret can be read from it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from stat import S_ISREG

# Suffixes of metadata folders.
_METADATA = (".dist-info", ".egg-info")
_PREFIX = "STANDARDS_MCP_"
# These variables determine the user's folders.
_PLACES = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
)
_MAX_BYTES = 1 << 20
"""Of larger files, only the size and the time of the last change count."""


def fingerprint(
    salt: bytes,
    *,
    path: Sequence[str],
    packages: Sequence[object] | None,
    environment: Mapping[str, str],
    variables: Collection[str],
    files: Iterable[str],
) -> dict[str, str]:
    """Return the parts of the fingerprint of a start. The keys are shown to people.

    Args:
        salt: A secret of the state folder.
        path: The folders for imports.
        packages: See `installed_packages`.
        environment: The environment variables.
        variables: The environment variables that settings of plugins read, by name. Variables with
            the host's prefix always count.
        files: The absolute paths of the files from which settings were read or could be read.
    """
    parts = {
        "Python": (sys.version, sys.executable, sys.flags, path),
        "installed packages": packages,
        "environment variables": _relevant(environment, variables),
        "configuration or state files": [(file, _contents(file)) for file in sorted(files)],
    }
    return {name: keyed_digest(salt, value) for name, value in parts.items()}


def keyed_digest(salt: bytes, value: object) -> str:
    """Return a digest of a value. Without the salt, nobody can test guesses of the value."""
    text = repr(value).encode("utf-8", "replace")
    return hashlib.blake2b(text, key=salt, digest_size=16).hexdigest()


def _relevant(environment: Mapping[str, str], variables: Collection[str]) -> list[tuple[str, str]]:
    names = {*_PLACES, *(name.upper() for name in variables)}
    return sorted(
        (name, value)
        for name, value in environment.items()
        if name.upper() in names or name.upper().startswith(_PREFIX)
    )


def _contents(file: str) -> object:
    """Return the bytes of a file, or its size and time if it is large or no regular file.

    None stands for a file that is missing or unreadable.
    """
    try:
        status = os.stat(file)
        # To open a pipe would wait for a writer, or take what another reader needs.
        if status.st_size > _MAX_BYTES or not S_ISREG(status.st_mode):
            return status.st_size, status.st_mtime_ns
        with open(file, "rb") as opened:
            return opened.read()
    except (OSError, ValueError):  # also a path that the system cannot have
        return None


def installed_packages(folders: Sequence[str]) -> list[object] | None:
    """Return a stamp of each installed distribution.

    A stamp has the name and the version, which are in the name of the metadata's folder, and the
    size and time of RECORD, which an installer writes last. An editable distribution keeps its
    RECORD when its code changes, so the files of its packages count, too, if it announces a plugin.

    Args:
        folders: The folders of the import path.

    Returns:
        The stamps, or None if the code of an editable plugin is not found.
    """
    stamps: list[object] = []
    packages = set[str]()
    for folder in folders:
        for metadata in _metadata_folders(folder or os.curdir):
            points = f"{metadata}/entry_points.txt"
            stamps.append((metadata, _stamp(f"{metadata}/RECORD"), _stamp(points)))
            if _is_editable(metadata):
                packages.update(_plugin_packages(points))
    for package in sorted(packages):
        stamp = _package_stamp(package, folders)
        if stamp is None:
            return None
        stamps.append((package, stamp))
    return stamps


def installed_version(distribution: str, folders: Iterable[str]) -> str:
    """Return the version of an installed distribution from its metadata's name, or ""."""
    for folder in folders:
        for metadata in _metadata_folders(folder or os.curdir):
            name, _, version = os.path.basename(metadata).partition("-")
            if name == distribution and version.endswith(".dist-info"):
                return version.removesuffix(".dist-info")
    return ""


def _metadata_folders(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:  # a folder that does not exist, or an archive
        return []
    return [f"{folder}/{name}" for name in sorted(names) if name.endswith(_METADATA)]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _is_editable(path: str) -> bool:
    """True if the code of a distribution may change while its metadata stays."""
    if not os.path.exists(f"{path}/RECORD"):
        return True
    try:
        with open(f"{path}/direct_url.json", encoding="utf-8") as file:
            return '"editable"' in file.read()
    except (OSError, ValueError):
        return False


def _plugin_packages(file: str) -> Iterator[str]:
    """Yield the packages that a distribution announces to the host, and the host's own."""
    is_ours = False
    with suppress(OSError, ValueError), open(file, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("["):
                is_ours = line.startswith("[standards_mcp")
            elif is_ours and "=" in line:
                yield line.partition("=")[2].partition(":")[0].partition(".")[0].strip()
                yield "standards_mcp"


def _package_stamp(package: str, folders: Iterable[str]) -> tuple[int, int, int] | None:
    """Return number, size and newest time of the files of a package, or None if it is not found."""
    for folder in folders:
        place = os.path.join(folder or os.curdir, package)
        if os.path.isdir(place):
            return _tree_stamp(place)
        if stamp := _stamp(f"{place}.py"):
            return 1, *stamp
    return None


def _tree_stamp(folder: str) -> tuple[int, int, int]:
    count = size = newest = 0
    folders = [folder]
    while folders:
        # Files come and go while others edit the package; links may lead nowhere or in a circle.
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                    continue
                count += 1
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    size, newest = size + status.st_size, max(newest, status.st_mtime_ns)
    return count, size, newest
