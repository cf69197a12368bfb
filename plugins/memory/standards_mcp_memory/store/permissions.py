"""Permissions of an embedded store."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = 0o700
_FILE: Final = 0o600


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, all of them for the owner only.

    Raises:
        OSError: It cannot be created.
    """
    if not folder.parent.exists():  # the mode that mkdir takes is not that of parents
        make_folder(folder.parent)
    folder.mkdir(_FOLDER, exist_ok=True)


def make_private(folder: Path) -> None:
    """Let only the owner read a store; Qdrant makes its files readable for all users.

    Files of another owner stay as they are, since only their owner may change them.
    """
    for each in (folder, *folder.rglob("*")):
        with suppress(PermissionError, FileNotFoundError):
            if not each.is_symlink():
                each.chmod(_FOLDER if each.is_dir() else _FILE)
