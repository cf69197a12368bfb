"""The public API of backups: the type `Backup`, and functions for SQLite databases.

A plugin returns its `Backup` from the hook ``register_backup``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from .databases import (
    IMMUTABLE,
    check_database,
    copy_database,
    may_be_immutable,
    overwrite_database,
)
from .errors import BackupError

__all__ = [
    "IMMUTABLE",
    "Backup",
    "BackupError",
    "check_database",
    "copy_database",
    "may_be_immutable",
    "overwrite_database",
]


class Backup(Protocol):
    """Saves and restores the data of one plugin on this machine."""

    def save(self, folder: Path) -> None:
        """Write a consistent copy of the data, which other processes may be using, into a folder.

        Args:
            folder: An empty folder. It stays empty if the plugin has no data yet.

        Raises:
            StandardsMcpError: The data cannot be read.
        """
        ...

    def restoring(self, folder: Path) -> AbstractContextManager[Callable[[], None]]:
        """Check a copy, and keep other processes from writing the data while the context is open.

        Args:
            folder: The folder with a copy that `save` made, perhaps in an earlier version. The
                files may be changed or moved away.

        Returns:
            A context manager with a function that replaces the data by the copy. If the process
            is killed at any moment, the data are the old ones or the copy.

        Raises:
            StandardsMcpError: The copy cannot be used, or another process uses the data. Nothing
                has changed then.
        """
        ...
