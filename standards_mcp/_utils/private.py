"""Create files and folders that only their owner can read, and close existing ones to others.

The host and the catalog use it for their own files. Files that a user names, such as an export,
follow the umask. On Windows, modes have no effect, and files inherit the rights of their folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISVTX
from typing import IO, Final

FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


def private_folder(path: Path) -> Path:
    """Create a folder and its missing parents with the mode 0700, and return *path*.

    An existing folder gets this mode, too, unless it is a shared one such as ``/tmp``.

    Raises:
        OSError: It cannot be created.
    """
    try:
        path.mkdir(_FOLDER_MODE)
    except FileNotFoundError:
        private_folder(path.parent)
        path.mkdir(_FOLDER_MODE, exist_ok=True)
    except OSError:
        if not path.is_dir():
            raise
    _restrict(path, _FOLDER_MODE)
    return path


def restrict(path: Path) -> None:
    """Close a file to others, or a folder with everything below it; links are left alone."""
    if path.is_symlink():
        return
    if path.is_dir():
        _restrict(path, _FOLDER_MODE)
        with suppress(OSError):
            for each in path.iterdir():
                restrict(each)
    else:
        _restrict(path, FILE_MODE)


def write_private(path: Path, data: str | bytes) -> None:
    """Write a file that only its owner can read; text is written as UTF-8.

    Raises:
        OSError: It cannot be written.
    """
    with open_private(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def open_private(path: Path) -> IO[bytes]:
    """Open a file that only its owner can read, for writing it anew.

    Raises:
        OSError: It cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)  # Windows
    file = os.fdopen(os.open(path, flags, FILE_MODE), "wb")
    _restrict(path, FILE_MODE)  # an existing file has kept its mode
    return file


def _restrict(path: Path, mode: int) -> None:
    with suppress(OSError):  # the file of another user, or a file system without modes
        found = S_IMODE(path.stat().st_mode)
        if found & 0o077 and not found & S_ISVTX:
            path.chmod(mode)
