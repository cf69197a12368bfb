"""Save and restore the database, also while servers use it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from standards_mcp_backup import check_database, copy_database, overwrite_database

from .schema import open_store
from .tables import atoms_revision, raise_atoms_revision

_NAME: Final = "career.db"


class CareerBackup:
    """The backup of the database at *path*, see `standards_mcp_backup.Backup`.

    Vectors are not saved: the next build of the index makes them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, folder: Path) -> None:
        """Copy the database, if there is one."""
        if self._path.exists():
            copy_database(self._path, folder / _NAME)

    @contextmanager
    def restoring(self, folder: Path) -> Generator[Callable[[], None]]:
        """Check a copy, and bring it to the newest version.

        Servers need not end: they see the old data until the end, then the new ones.
        """
        copy = folder / _NAME
        check_database(copy)
        open_store(copy).close()

        def replace() -> None:
            with closing(open_store(self._path)) as store, store.reading() as connection:
                revision = atoms_revision(connection)
            with closing(open_store(copy)) as store, store.writing() as connection:
                raise_atoms_revision(connection, revision)
            overwrite_database(self._path, copy)

        yield replace
