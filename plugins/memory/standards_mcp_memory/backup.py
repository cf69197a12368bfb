"""Save and restore an embedded store, also while another process has it open."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from filelock import FileLock

from standards_mcp.files import private_folder
from standards_mcp_backup import BackupError, check_database, copy_database

from .folder import (
    COLLECTIONS_NAME,
    LOCK_NAME,
    META_NAME,
    RESTORED_NAME,
    lock_folder,
    restore,
)

_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.25
_Stamp: TypeAlias = tuple[int, int, int, bool]


class MemoryBackup:
    """The backup of an embedded store, see `standards_mcp_backup.Backup`.

    Args:
        folder: The folder of the store, which may be missing.
        lock_wait: Seconds to wait for another program that has the store open, in `restoring`.
    """

    def __init__(self, folder: Path, lock_wait: float) -> None:
        self._folder, self._lock_wait = folder, lock_wait

    def save(self, folder: Path) -> None:
        """Copy each collection in one state of it.

        Raises:
            BackupError: A collection is damaged, or collections are created and deleted all the
                time.
        """
        reason = ""
        for _ in range(_ATTEMPTS):
            if not (self._folder / META_NAME).exists():
                return
            # A copy is consistent if no collection was created or deleted meanwhile. The process
            # that has the store open holds its lock for hours, so the lock is no help here.
            try:
                if (self._folder / RESTORED_NAME).exists():  # of a restore that was killed
                    self._lock().release()
                before = self._stamp()
                self._copy(folder)
                if before == self._stamp():
                    return
                reason = "collections are created and deleted all the time; try again later"
            except (OSError, BackupError) as error:
                reason = str(error)
            shutil.rmtree(folder)
            private_folder(folder)
            time.sleep(_PAUSE_SECONDS)
        raise BackupError(f"the memory store in {self._folder} cannot be copied: {reason}")

    @contextmanager
    def restoring(self, folder: Path) -> Generator[Callable[[], None]]:
        """Check a copy, and hold the lock of the store.

        Raises:
            BackupError: The copy is damaged, or another program has the store open.
        """
        for database in (folder / COLLECTIONS_NAME).glob("*/*.sqlite"):
            check_database(database)
        private_folder(folder / COLLECTIONS_NAME)
        copied = {path.name for path in (folder / COLLECTIONS_NAME).iterdir()}
        if not copied <= _collections(folder / META_NAME):
            raise BackupError("the copy of the memories has other collections than its list")
        lock = self._lock()
        try:
            yield lambda: restore(self._folder, folder)
        finally:
            lock.release()

    def _lock(self) -> FileLock:
        """Return the lock of the store, which is held; an interrupted restore is complete then.

        Raises:
            BackupError: Another program has the store open, or the store is damaged.
        """
        lock = FileLock(private_folder(self._folder) / LOCK_NAME)
        try:
            lock_folder(self._folder, lock, time.monotonic() + self._lock_wait)
        except TimeoutError:
            raise BackupError(
                f"the memory store in {self._folder} is in use; end the server, or wait until it "
                "has been idle for [plugins.memory] idle_close seconds, and try again"
            ) from None
        except Exception as error:  # damaged files cause errors of nearly any type
            raise BackupError(
                f"the memory store in {self._folder} is damaged ({error}); move it away, and try "
                "again"
            ) from error
        return lock

    def _copy(self, folder: Path) -> None:
        names = _collections(self._folder / META_NAME)
        shutil.copyfile(self._folder / META_NAME, folder / META_NAME)
        for name in names:
            for database in (self._folder / COLLECTIONS_NAME / name).glob("*.sqlite"):
                target = private_folder(folder / COLLECTIONS_NAME / name) / database.name
                copy_database(database, target)

    def _stamp(self) -> _Stamp:
        status = (self._folder / META_NAME).stat()
        is_restored = (self._folder / RESTORED_NAME).exists()
        return status.st_mtime_ns, status.st_ino, status.st_size, is_restored


def _collections(meta: Path) -> set[str]:
    """Return the names of the collections in a list of Qdrant.

    Raises:
        BackupError: The list cannot be read, or a name is no name of a folder.
    """
    try:
        data: dict[str, Any] = json.loads(meta.read_text("utf-8"))
        names = set(data["collections"].keys())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"{meta} cannot be read: {error}") from error
    if any(Path(name).name != name or name in {"", ".."} for name in names):
        raise BackupError(f"{meta} has a collection with the name of another folder")
    return names
