"""Find the files to read: named by the user, or in a named folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from standards_mcp_documents import KINDS

from .items import SkippedFile, plain_text

TABLES = (".csv", ".json", ".jsonl")
ARCHIVES = (".imscc", ".zip")
SUFFIXES = (*KINDS, *TABLES, *ARCHIVES, ".xml")
"""The suffixes of the files that can be read."""


def find_files(paths: Sequence[Path]) -> tuple[list[Path], list[SkippedFile]]:
    """Return the files to read, each once, and the skipped ones.

    A folder is searched with its subfolders in the order of names. In it, hidden files, files of
    other types and folders that are links are left out, and links to files elsewhere are reported
    as skipped.
    """
    files: dict[Path, None] = {}
    skipped: list[SkippedFile] = []
    for path in paths:
        if path.is_dir():
            files |= dict.fromkeys(_files_in(path, skipped))
        else:
            files[path] = None
    return list(files), skipped


def shown_name(path: Path) -> str:
    """Return the path of a file for people; a name that is not UTF-8 gets question marks."""
    return plain_text(path.as_posix()).replace("\n", " ")


def _files_in(folder: Path, skipped: list[SkippedFile]) -> Iterator[Path]:
    def skip(path: Path, reason: str) -> None:
        skipped.append(SkippedFile(shown_name(path), reason))

    def skip_unreadable(error: OSError) -> None:
        skip(Path(error.filename), f"it cannot be read: {error.strerror}")

    root = os.path.realpath(folder)
    for directory, folders, names in os.walk(folder, onerror=skip_unreadable):
        links = [Path(directory, name) for name in _visible(folders) if _is_link(directory, name)]
        for link in links:
            skip(link, "a link to a folder")
        folders[:] = [name for name in _visible(folders) if not _is_link(directory, name)]
        for path in (Path(directory, name) for name in _visible(names)):
            if path.suffix.lower() not in SUFFIXES:
                continue
            if Path(os.path.realpath(path)).is_relative_to(root):
                yield path
            else:
                skip(path, "a link that leaves the folder")


def _visible(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("."))


def _is_link(directory: str, name: str) -> bool:
    return Path(directory, name).is_symlink()
