"""Find the documents in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG

from standards_mcp_documents import KINDS

from .options import Skipped


def find_sources(folder: Path, include: Sequence[str]) -> tuple[list[str], list[Skipped]]:
    """Return the documents in a folder, and the skipped files and folders.

    Documents are sorted paths relative to the folder, with ``/``. Links to folders are not
    followed: a target inside the folder is read at its own path. Files of other types and files
    that no glob includes are not reported as skipped.
    """
    folder = folder.resolve()
    names: list[str] = []
    skipped: list[Skipped] = []
    for path in _walk(folder, skipped):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() not in KINDS or not _is_included(name, include):
            continue
        if reason := _skip_reason(path, folder):
            skipped.append(Skipped(_printable(name), reason))
        else:
            names.append(name)
    return sorted(names), skipped


def _walk(folder: Path, skipped: list[Skipped]) -> Iterator[Path]:
    def skip(path: Path, reason: str) -> None:
        skipped.append(Skipped(_printable(path.relative_to(folder).as_posix()) + "/", reason))

    def skip_unreadable(error: OSError) -> None:
        skip(Path(error.filename), f"it cannot be read: {error.strerror}")

    for directory, folders, files in os.walk(folder, onerror=skip_unreadable):
        for path in [Path(directory, name) for name in folders]:
            if reason := _skip_reason(path, folder):
                folders.remove(path.name)  # so that os.walk does not enter it
                skip(path, reason)
        yield from (Path(directory, name) for name in files)


def _skip_reason(path: Path, folder: Path) -> str:
    """Return the reason to skip a file or a folder; an empty string to read it."""
    if path.name.startswith("."):
        return "hidden"
    if not _is_inside(path, folder):
        return "a link that leaves the folder"
    if path.is_dir():
        return "a link to a folder" if path.is_symlink() else ""
    name = str(path.relative_to(folder))
    if _printable(name) != name:
        return "its name is not UTF-8"
    try:
        return "" if S_ISREG(path.stat().st_mode) else "not a file"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _is_inside(path: Path, folder: Path) -> bool:
    # Path.resolve fails for circular links.
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _is_included(name: str, include: Iterable[str]) -> bool:
    globs = [variant for glob in include for variant in (glob, glob.replace("**/", ""))]
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()
