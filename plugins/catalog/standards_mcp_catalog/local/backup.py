"""Save and restore the database of the embedded catalog; the index is built from it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from standards_mcp_backup import check_database, copy_database, overwrite_database

from .copies import Copy, copy_of, mark
from .database import Database
from .folder import CatalogFolder
from .index.engine import Engine
from .index.generation import make_current

_LOCK_SECONDS: Final = 10.0


class CatalogBackup:
    """The backup of a catalog, see `standards_mcp_backup.Backup`.

    Args:
        path: The folder of the catalog.
        engine: Builds the index in this folder.
    """

    def __init__(self, path: Path, engine: Engine) -> None:
        self._folder, self._engine = CatalogFolder(path, _LOCK_SECONDS), engine

    def save(self, folder: Path) -> None:
        """Copy the database as the last finished import left it."""
        if self._folder.exists():
            copy_database(self._folder.database, folder / self._folder.database.name)

    @contextmanager
    def restoring(self, folder: Path) -> Generator[Callable[[], None]]:
        """Check a copy, and hold the lock for writers. Searches go on, before and after."""
        copy = folder / self._folder.database.name
        check_database(copy)
        with closing(Database(copy)) as copied, self._folder.locked():
            if self._folder.exists():
                with closing(Database(self._folder.database)) as present:
                    _follow(copied, present.revision, copy_of(present))
            else:
                _follow(copied, 0, None)

            def replace() -> None:
                # The index is ready before the database is replaced, so that both change within
                # a moment. If the process is killed between them, searches say so.
                index = self._engine.prepare(copied, None)
                self._folder.create_missing()
                overwrite_database(self._folder.database, copy)
                make_current(index)

            yield replace


def _follow(copied: Database, present_revision: int, present: Copy | None) -> None:
    """Let the restored database take the place of the present one.

    If it is a copy of a snapshot, the next pull downloads all, but no older snapshot than now.

    Args:
        present: The snapshot that the present catalog is a copy of.
    """
    # A revision that no process has seen yet, since processes keep facts by revisions.
    copied.set_meta("revision", str(max(copied.revision, present_revision) + 1))
    if copy := copy_of(copied):
        counter = copy.counter
        if present and present.publisher == copy.publisher:
            counter = max(counter, present.counter)
        mark(copied, replace(copy, counter=counter, database="", index="", folder=""))
