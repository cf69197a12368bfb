"""`data publish`: write a signed snapshot of the catalog into a folder."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from standards_mcp.files import full_disk
from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.index.manifest import VERSION as INDEX_VERSION
from standards_mcp_catalog.local.index.manifest import read_manifest
from standards_mcp_catalog.local.sqlite import SCHEMA_VERSION
from standards_mcp_catalog.local.store import LocalStore

from .format import (
    DATABASE,
    INDEX,
    MANIFEST,
    PIECE_BYTES,
    PIECES,
    Manifest,
    SnapshotError,
    SnapshotFile,
    digest_of,
    public_text,
    signed,
    verified,
)
from .keys import NAME as KEY_FILE

_NAME: Final = re.compile("[0-9a-f]{64}")
_SCRATCH: Final = ".standards-mcp-new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The result of `publish`.

    Attributes:
        is_new: False if the folder had this content already, and nothing was written.
        written: The size in bytes of the pieces that were written.
    """

    manifest: Manifest
    is_new: bool
    written: int


def publish(
    store: LocalStore, folder: Path, key: Ed25519PrivateKey, progress: Progress | None = None
) -> Published:
    """Write a snapshot of *store* into *folder*, which people may serve over HTTP.

    The lock of the catalog is held, so that database and index belong together. Readers see the
    old snapshot or the new one, also when this is killed. The pieces of the snapshot before stay,
    for pulls that have begun with it.

    Raises:
        SnapshotError: The folder cannot be written, or has a snapshot of another publisher.
        CatalogError: The catalog cannot be read.
    """
    # The errors of FOLDER are handled inside, since the catalog would take them for its own.
    with store.frozen(progress) as (database, index), _write_errors(folder):
        before = _last_manifest(folder, public_text(key))
        scratch = folder / _SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)  # left by a killed run
        scratch.mkdir(parents=True)
        try:
            _copy_published(database, scratch)
            paths = {DATABASE: scratch / DATABASE, **_index_files(index)}
            pieces = _Pieces(folder / PIECES, scratch)
            files = {name: pieces.add(path) for name, path in paths.items()}
            described = read_manifest(index)
            manifest = Manifest(
                schema_version=SCHEMA_VERSION, index_version=INDEX_VERSION,
                model=described.model, records=described.records, files=files,
                time=datetime.now(UTC).replace(microsecond=0), counter=_counter(before),
            )  # fmt: skip
            if before and _is_equal(before, manifest):
                return Published(manifest=before, is_new=False, written=pieces.written)
            _write(folder / MANIFEST, signed(manifest, key), scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        pieces.remove_others(manifest, *([before] if before else []))
        return Published(manifest=manifest, is_new=True, written=pieces.written)


def _copy_published(database: Database, scratch: Path) -> None:
    """Write the database of the snapshot, in which nothing of deleted texts is left."""
    whole = scratch / "whole.sqlite3"
    database.copy_to(whole)
    with closing(Database(whole)) as copy:
        # The catalog keeps these vectors, so that a text that comes back is not embedded again.
        copy.remove_unused_vectors()
        copy.copy_to(scratch / DATABASE)


@contextmanager
def _write_errors(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = full_disk.reason_of(error)
        raise SnapshotError(f"cannot publish to {folder}: {reason}") from error


def _last_manifest(folder: Path, publisher: str) -> Manifest | None:
    try:
        return verified((folder / MANIFEST).read_bytes(), publisher)
    except FileNotFoundError:
        return None
    except SnapshotError as error:
        raise SnapshotError(
            f"{folder} has a snapshot that this machine did not publish ({error}); choose another "
            f"folder, delete {MANIFEST} there, or put the earlier {KEY_FILE} back into the state "
            "folder"
        ) from None


def _counter(before: Manifest | None) -> int:
    # The clock, so that the counter also grows in a new folder and after a restored backup.
    return max(int(time.time()), before.counter + 1 if before else 1)


def _is_equal(before: Manifest, manifest: Manifest) -> bool:
    """Return True if the contents are equal, whatever the time."""
    return before == manifest.model_copy(update={"counter": before.counter, "time": before.time})


def _index_files(index: Path) -> dict[str, Path]:
    """Return the files of an index folder by their names in the snapshot."""
    names = ("manifest.json", *read_manifest(index).files)
    return {f"{INDEX}{name}": index / name for name in names}


class _Pieces:
    """The folder of the pieces.

    Attributes:
        written: The size in bytes of the pieces that were written.
    """

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder, self._scratch = folder, scratch
        self.written = 0
        folder.mkdir(exist_ok=True)

    def add(self, path: Path) -> SnapshotFile:
        """Write the pieces of a file that are missing or damaged."""
        digests, size = list[str](), 0
        with path.open("rb") as file:
            while data := file.read(PIECE_BYTES):
                digests.append(digest_of(data))
                size += len(data)
                target = self._folder / digests[-1]
                if not (target.is_file() and target.read_bytes() == data):
                    _write(target, data, self._scratch)
                    self.written += len(data)
        return SnapshotFile(size=size, pieces=tuple(digests))

    def remove_others(self, *manifests: Manifest) -> None:
        """Delete the pieces that are in none of *manifests*; leave files with other names."""
        kept = {
            digest
            for manifest in manifests
            for file in manifest.files.values()
            for digest in file.pieces
        }
        for path in self._folder.iterdir():
            if _NAME.fullmatch(path.name) and path.name not in kept:
                with suppress(OSError):  # the next run tries again
                    path.unlink()


def _write(path: Path, data: bytes, scratch: Path) -> None:
    """Replace a file as a whole. Its mode follows the umask: a web server may have to read it."""
    temporary = scratch / path.name
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
