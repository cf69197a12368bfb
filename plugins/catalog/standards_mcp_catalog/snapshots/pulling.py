"""`data pull`: make the catalog a read-only copy of a published snapshot.

<catalog>/pull/   what was downloaded so far; a pull that was interrupted goes on with it
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from standards_mcp.files import FILE_MODE, full_disk, private_folder
from standards_mcp_backup import BackupError, overwrite_database
from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.errors import CatalogUnavailableError
from standards_mcp_catalog.local import seeding
from standards_mcp_catalog.local.copies import Copy, copy_of, mark
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.folder import CatalogFolder
from standards_mcp_catalog.local.index.generation import Generation, install, new_name
from standards_mcp_catalog.local.index.manifest import VERSION as INDEX_VERSION
from standards_mcp_catalog.local.index.manifest import current_folder
from standards_mcp_catalog.local.sqlite import SCHEMA_VERSION
from standards_mcp_catalog.local.store import LocalStore

from .format import (
    DATABASE,
    INDEX,
    LARGEST_MANIFEST,
    MANIFEST,
    PIECES,
    Manifest,
    Piece,
    SnapshotError,
    SnapshotFile,
    digest_of,
    digest_of_files,
    verified,
)
from .sources import Source

# Beside the download, the journal of the database and the database itself grow by its size.
_COPIES_OF_DATABASE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """The result of `pull`.

    Attributes:
        is_new: False if the catalog was this copy already.
        downloaded: The bytes that came from the source; the others were on this machine.
    """

    manifest: Manifest
    is_new: bool
    downloaded: int


def pull(
    store: LocalStore,
    source: Source,
    publisher: str,
    *,
    replace_own: bool = False,
    progress: Progress | None = None,
) -> Pulled:
    """Replace the catalog of *store* by the snapshot at *source*.

    Everything is downloaded and checked before anything changes. Servers that have the catalog open
    search the old data until then, and the new data from the next call on.

    Args:
        publisher: The public key that must have signed the snapshot.
        replace_own: Replace records of the user's own, too.
        progress: Called with the bytes that are here and checked, and those that are needed.

    Raises:
        SnapshotError: The snapshot cannot be trusted, read or used; nothing has changed.
        CatalogError: The catalog cannot be read or written; nothing has changed.
    """
    manifest = verified(source(MANIFEST, LARGEST_MANIFEST), publisher)
    _check_usable(manifest, store.model_name())
    folder = store.folder
    try:
        with _only_pull(folder.path):
            copy = _current_copy(folder, publisher, manifest, replace_own=replace_own)
            pulling = _Pull(folder, source, manifest, progress, replace_own=replace_own)
            return pulling.run(copy, publisher)
    except OSError as error:
        reason = full_disk.reason_of(error)
        raise SnapshotError(f"cannot write to {folder.path}: {reason}") from error


def _check_usable(manifest: Manifest, model: str | None) -> None:
    published = manifest.schema_version, manifest.index_version
    if published != (SCHEMA_VERSION, INDEX_VERSION):
        raise SnapshotError(
            f"the database and the index of the snapshot have the versions {published}, and this "
            f"standards-mcp reads {SCHEMA_VERSION, INDEX_VERSION}; install the same version here "
            "and at the publisher"
        )
    if manifest.model != model:
        raise SnapshotError(
            f"the snapshot has the vectors of the text model {manifest.model!r}, and the model "
            f"here is {model!r}; set [plugins.catalog.local] model as at the publisher"
        )


@contextmanager
def _only_pull(catalog: Path) -> Generator[None]:
    import filelock  # noqa: PLC0415  - costs start-up time

    private_folder(catalog / "pull")
    lock = filelock.FileLock(catalog / "pull" / "lock", 0, FILE_MODE)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise SnapshotError(f"another `data pull` is writing to {catalog}") from error
    try:
        yield
    finally:
        lock.release()


def _current_copy(
    folder: CatalogFolder, publisher: str, manifest: Manifest, *, replace_own: bool
) -> Copy | None:
    """Return the snapshot that the catalog is a copy of.

    Raises:
        SnapshotError: It is newer than *manifest*, or the catalog has records of the user's own.
    """
    if not folder.exists():
        return None
    with closing(Database(folder.database)) as database:
        copy = copy_of(database)
        if not replace_own:
            _check_own(folder, database)
    if copy and copy.publisher == publisher and copy.counter > manifest.counter:
        raise SnapshotError(
            f"the source has {manifest.title}, which is older than snapshot {copy.counter} here; "
            "an old snapshot was put back, or the source is out of date"
        )
    return copy


def _check_own(folder: CatalogFolder, database: Database) -> None:
    if copy_of(database) is None and seeding.has_own_records(database):
        raise SnapshotError(
            f"the catalog at {folder.path} has records of its own, which a pull would delete; keep "
            "a copy by `standards-mcp data export --output all.jsonl`, and add --replace"
        )


class _Pull:
    """One pull into the folder of a catalog, while the lock of pulls is held."""

    def __init__(
        self,
        folder: CatalogFolder,
        source: Source,
        manifest: Manifest,
        progress: Progress | None,
        *,
        replace_own: bool,
    ) -> None:
        self._folder, self._source, self._manifest = folder, source, manifest
        self._staging = folder.path / "pull"
        self._progress, self._replace_own = progress, replace_own
        self._done = self._total = self._downloaded = 0

    def run(self, copy: Copy | None, publisher: str) -> Pulled:
        """Download what differs from *copy*, check it, and make it the catalog."""
        manifest, staging = self._manifest, self._staging
        database_files = {DATABASE: manifest.files[DATABASE]}
        database, index = digest_of_files(database_files), digest_of_files(manifest.index)
        new_database = copy is None or copy.database != database
        new_index = not (copy and copy.index == index and self._is_intact(copy.folder))
        new = Copy(
            publisher=publisher, counter=manifest.counter, database=database, index=index,
            folder=copy.folder if copy and not new_index else "",
        )  # fmt: skip
        if new == copy:
            return Pulled(manifest=manifest, is_new=False, downloaded=0)
        files = dict(database_files) if new_database else {}
        if new_index:
            files |= {f"{INDEX}{name}": file for name, file in manifest.index.items()}
        _remove_unlisted(staging, files)
        self._total = sum(file.size for file in files.values())
        self._check_room(files)
        for name, file in files.items():
            self._assemble(name, file)
        self._swap(new, new_database=new_database, new_index=new_index)
        _remove_unlisted(staging, {})
        return Pulled(manifest=manifest, is_new=True, downloaded=self._downloaded)

    def _is_intact(self, name: str) -> bool:
        """Return True if the index folder *name* is the current one, and can be read."""
        try:
            return current_folder(self._folder.index).name == name and bool(
                Generation(self._folder.index / name).manifest
            )
        except CatalogUnavailableError:
            return False

    def _check_room(self, files: Mapping[str, SnapshotFile]) -> None:
        staged = sum(path.stat().st_size for path in self._staging.rglob("*") if path.is_file())
        needed = self._total - staged
        if DATABASE in files:
            needed += _COPIES_OF_DATABASE * files[DATABASE].size
        if needed > (free := shutil.disk_usage(self._staging).free):
            raise SnapshotError(
                f"{self._manifest.title} needs {needed:,} bytes on the disk of "
                f"{self._folder.path}, and {free:,} are free"
            )

    def _assemble(self, name: str, file: SnapshotFile) -> None:
        """Write a file of the snapshot into the staging folder, from pieces here or downloaded."""
        path = self._staging / name
        private_folder(path.parent)
        path.touch(FILE_MODE)
        candidates = sorted(self._folder.index.glob(f"*/{name.removeprefix(INDEX)}"))
        with path.open("r+b") as staged:
            for piece in file.spans():
                if _local_piece([path], piece) is None:
                    data = _local_piece(candidates, piece) or self._download(name, piece)
                    staged.seek(piece.offset)
                    staged.write(data)
                    staged.flush()
                self._done += piece.size
                if self._progress:
                    self._progress(self._done, self._total)
            staged.truncate(file.size)
            staged.flush()
            os.fsync(staged.fileno())

    def _download(self, name: str, piece: Piece) -> bytes:
        data = self._source(f"{PIECES}/{piece.digest}", piece.size)
        if digest_of(data) != piece.digest:
            raise SnapshotError(
                f"the piece {piece.digest} of {name} is damaged or was changed at the source"
            )
        self._downloaded += len(data)
        return data

    def _swap(self, copy: Copy, *, new_database: bool, new_index: bool) -> None:
        """Check what was assembled, and make it the catalog.

        The folder of the index is moved and the database is written in one transaction before the
        pointer to the index changes. If this is killed in between, searches find the new records by
        the old index, and the next pull completes the swap.
        """
        staged, folder = self._staging / DATABASE, self._folder
        name = copy.folder
        with folder.writing() as live, ExitStack() as stack:
            if not self._replace_own:
                _check_own(folder, live)
            database = stack.enter_context(closing(Database(staged))) if new_database else live
            index = self._staging / "index" if new_index else folder.index / name
            self._check_parts(database, index)
            if new_index:
                name = new_name(database.revision)
                stack.enter_context(install(index, folder.index, name))
            mark(database, replace(copy, folder=name))
            if new_database:
                try:
                    overwrite_database(folder.database, staged)
                except BackupError as error:
                    raise SnapshotError(str(error)) from error
                live.truncate_journal()

    def _check_parts(self, database: Database, index: Path) -> None:
        described = Generation(index).manifest
        stated = database.revision, database.count(), self._manifest.records, self._manifest.model
        records = described.records
        if stated != (described.revision, records, records, described.model):
            raise SnapshotError("the database and the index of the snapshot do not fit together")


def _remove_unlisted(staging: Path, files: Iterable[str]) -> None:
    """Delete the other files of earlier pulls in the staging folder, and empty folders."""
    kept = {staging / name for name in ("lock", *files)}
    for path in sorted(staging.rglob("*"), reverse=True):
        if path.is_dir():
            with suppress(OSError):  # it is not empty
                path.rmdir()
        elif path not in kept:
            path.unlink(missing_ok=True)


def _local_piece(paths: Sequence[Path], piece: Piece) -> bytes | None:
    """Return the piece if one of the files *paths* has it."""
    for path in paths:
        with suppress(OSError), path.open("rb") as file:
            file.seek(piece.offset)
            data = file.read(piece.size)
            if digest_of(data) == piece.digest:
                return data
    return None
