"""The folder of an embedded catalog: its files, and the lock for writers.

<path>/catalog.sqlite3  the database
<path>/catalog.lock     held by the process that writes the database or builds the index
<path>/index/           see `generation`
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from standards_mcp.files import FILE_MODE, full_disk, private_folder
from standards_mcp_catalog.errors import CatalogUnavailableError

from .database import Database
from .sqlite import create_database

if TYPE_CHECKING:
    from filelock import BaseFileLock

log = logging.getLogger(__name__)

_SILENT_WAIT: Final = 2.0  # seconds


class CatalogFolder:
    """The paths of one catalog.

    Args:
        lock_timeout: Seconds to wait for another process that writes or builds.
    """

    def __init__(self, path: Path, lock_timeout: float) -> None:
        self.path = path
        self.database = path / "catalog.sqlite3"
        self.index = path / "index"
        self._lock = path / "catalog.lock"
        self._lock_timeout = lock_timeout

    def exists(self) -> bool:
        """Return True if there is a database file.

        Raises:
            CatalogUnavailableError: The path of the folder, or of a parent, is a file.
        """
        try:
            found = self.database.exists()
            if not found and self._blocking_file():
                raise NotADirectoryError
        except OSError as error:
            raise self._write_error(error) from error
        return found

    def check_writable(self) -> None:
        """Check that the folder can be written, and create it if it is missing.

        Raises:
            CatalogUnavailableError: The folder cannot be created or written.
        """
        # If another process holds the lock, the folder can be written.
        with suppress(TimeoutError), self._locked(0):
            pass

    def size(self) -> int:
        """Return the size of all files in bytes."""
        total = 0
        # Another process may remove replaced folders and files; `walk` skips missing folders.
        for folder, _, names in os.walk(self.path):
            for name in names:
                with suppress(FileNotFoundError):
                    total += os.stat(Path(folder, name), follow_symlinks=False).st_size  # noqa: PTH116
        return total

    @contextmanager
    def writing(self, timeout: float | None = None) -> Generator[Database, None, None]:
        """Hold the lock and open the database; create it if it is missing, see `locked`."""
        with self.locked(timeout):
            self.create_missing()
            with closing(Database(self.database)) as database:
                yield database

    def create_missing(self) -> None:
        """Create an empty database if there is none; the caller holds the lock."""
        if not self.database.exists():
            create_database(self.database)

    @contextmanager
    def locked(self, timeout: float | None = None) -> Generator[None, None, None]:
        """Hold the lock for writers.

        Args:
            timeout: Seconds to wait for another process, if not those of the constructor.

        Raises:
            CatalogUnavailableError: Another process holds the lock for too long, or the folder
                cannot be written.
        """
        import filelock  # noqa: PLC0415  - takes 6 ms, and most starts write nothing

        seconds = self._lock_timeout if timeout is None else timeout
        try:
            with self._locked(seconds):
                yield
        except filelock.Timeout as error:
            raise CatalogUnavailableError(
                f"another process has been writing to {self.path} for {seconds:g} "
                f"seconds ({self._lock} is locked); try again when it is done"
            ) from error
        except OSError as error:
            raise self._write_error(error) from error
        except ValueError as error:  # tantivy raises it for every failure
            if not full_disk.is_full(error):
                raise
            raise self._write_error(error) from error

    @contextmanager
    def _locked(self, timeout: float) -> Generator[None, None, None]:
        import filelock  # noqa: PLC0415  - as above

        lock = filelock.FileLock(self._lock, mode=FILE_MODE)
        try:
            if not self.path.exists():  # the mode of a user's own folder stays as it is
                private_folder(self.path)
            self._acquire(lock, timeout)
        except TimeoutError:  # a subclass of OSError that the callers handle
            raise
        except (OSError, NotImplementedError) as error:  # the latter: no locks on this file system
            raise self._write_error(error) from error
        try:
            yield
        finally:
            lock.release()

    def _acquire(self, lock: BaseFileLock, timeout: float) -> None:
        """Take the lock, and log a warning when this takes longer than a moment."""
        # A short write of another process needs no message; a long import would look like a hang.
        try:
            lock.acquire(timeout=min(_SILENT_WAIT, timeout))
        except TimeoutError:
            if timeout <= _SILENT_WAIT:
                raise
            log.warning(
                "waiting up to %g seconds for another process that writes to %s", timeout, self.path
            )
            lock.acquire(timeout=timeout)

    def _blocking_file(self) -> Path | None:
        """Return the file that blocks the path of the folder, or None."""
        nearest = next((each for each in (self.path, *self.path.parents) if each.exists()), None)
        return None if nearest is None or nearest.is_dir() else nearest

    def _write_error(self, error: Exception) -> CatalogUnavailableError:
        if full_disk.is_full(error):
            return CatalogUnavailableError(
                f"cannot write the catalog in {self.path}: {full_disk.MESSAGE}"
            )
        reason = str(error)
        with suppress(OSError):
            if blocking := self._blocking_file():
                reason = f"{blocking} is not a folder"
        return CatalogUnavailableError(
            f"cannot write the catalog in {self.path}: {reason}; set [plugins.catalog] path "
            "(STANDARDS_MCP_PLUGINS__CATALOG__PATH) to a folder that can be written"
        )
