"""Finds the documents in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from .options import Skipped
from .readers import SUFFIXES


class Source(NamedTuple):
    """A file to read, and its path relative to the folder, with ``/``."""

    path: Path
    name: str


def find_sources(folder: Path, include: Sequence[str]) -> tuple[list[Source], list[Skipped]]:
    """Return the documents in a folder, in order of their names, and what is left out.

    Links to folders are not followed: a folder inside is read where it is. Files of other kinds,
    and those that no glob includes, are not mentioned.
    """
    folder = folder.resolve()
    found: list[Source] = []
    skipped: list[Skipped] = []
    for path in _walk(folder, skipped):
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() not in SUFFIXES or not _is_included(name, include):
            continue
        if reason := _refusal(path, folder):
            skipped.append(Skipped(_printable(name), reason))
        else:
            found.append(Source(path, name))
    return sorted(found, key=lambda source: source.name), skipped


def _walk(folder: Path, skipped: list[Skipped]) -> Iterator[Path]:
    def skip(path: Path, reason: str) -> None:
        skipped.append(Skipped(_printable(path.relative_to(folder).as_posix()) + "/", reason))

    def skip_unreadable(error: OSError) -> None:
        skip(Path(error.filename), f"cannot be read: {error.strerror}")

    for place, folders, files in os.walk(folder, onerror=skip_unreadable):
        for name in tuple(folders):
            if reason := _refusal_of_folder(Path(place, name), folder):
                folders.remove(name)  # and so it is not walked
                skip(Path(place, name), reason)
        yield from (Path(place, name) for name in files)


def _refusal_of_folder(path: Path, folder: Path) -> str:
    if path.name.startswith("."):
        return "hidden"
    if path.is_symlink():
        inside = path.resolve().is_relative_to(folder)
        return "a link to a folder" if inside else "a link that leaves the folder"
    return ""


def _refusal(path: Path, folder: Path) -> str:
    if path.name.startswith("."):
        return "hidden"
    if not Path(os.path.realpath(path)).is_relative_to(folder):  # a link may lead in a circle
        return "a link that leaves the folder"
    name = str(path.relative_to(folder))
    if _printable(name) != name:
        return "its name is not UTF-8"
    try:
        return "" if S_ISREG(path.stat().st_mode) else "not a file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _is_included(name: str, include: Iterable[str]) -> bool:
    globs = [each for glob in include for each in (glob, glob.replace("**/", ""))]
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()
