"""One build of the index: a folder that is written once and then only read.

index/current             the name of the current folder
index/<name>/manifest.json  model, counts, and sizes and checksums of the other files
index/<name>/columns.npz    metadata fields, see `columns`
index/<name>/groups.npy     for each row the number of its text; equal texts share one
index/<name>/heights.npy    for each row the number of levels of rows below it
index/<name>/replaced.npy   pairs: a row of the starter set, an official row of its standard
index/<name>/vectors.npy    and the other files of `vectors`, only when there is a model
index/<name>/texts.npy      the phrases, UTF-8 padded to one length, in the order of their vectors
index/<name>/text/          the full-text index, see `lexical`
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from standards_mcp.files import open_private, private_folder, restrict
from standards_mcp_catalog.errors import CatalogUnavailableError
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.starter import starter_edition

from .columns import Columns
from .lexical import LexicalIndex
from .manifest import (
    FORMAT,
    POINTER,
    REBUILD,
    VERSION,
    Manifest,
    current_folder,
    read_manifest,
    reading,
    with_retries,
)
from .rows import write_rows
from .spelling import Spelling
from .vectors import StoredVectors

# To read the 1.5 GB of a million vectors would take seconds at every start.
LARGEST_CHECKED = 2**22
"""Up to this size in bytes, a file has a checksum; of a larger one, only the size is compared."""
# NumPy reads headers by `ast`, which fails now and then in threads (python/cpython#106905).
_HEADER_LOCK = threading.Lock()


class Generation:
    """An open index folder.

    Raises:
        CatalogUnavailableError: A file is missing, damaged, or belongs to another index.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        _check_files(folder, self.manifest)
        self.lexical = LexicalIndex(folder / "text")
        self.spelling = Spelling(self.lexical)
        self.vectors: StoredVectors | None = None
        with _HEADER_LOCK:
            self.columns = Columns(folder / "columns.npz")
            self.groups = self._array("groups.npy", np.int32, (self.manifest.records,))
            self.heights = self._array("heights.npy", np.int32, (self.manifest.records,))
            self.replaced = self._array("replaced.npy", np.int32, (None, 2))
            if self.manifest.model is not None:
                self.vectors = StoredVectors.read(
                    self._array, self.manifest.records, self.manifest.dimensions
                )
                self._phrases = self._array("texts.npy", np.uint8, (None, None))

    def ids(self) -> list[str]:
        """Return the id of the record of each row."""
        column = self.columns.get("_id")
        return [] if column is None else column.values

    def phrase(self, place: int) -> str:
        """Return the text of a phrase; *place* counts from the first phrase."""
        return bytes(self._phrases[place]).rstrip(b"\0").decode()

    def _array(self, name: str, dtype: type, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        path = self.folder / name
        with reading(path):
            found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        expected = tuple(own or size for own, size in zip(shape, found.shape, strict=False))
        if found.dtype != dtype or found.shape != expected:
            raise CatalogUnavailableError(f"{path} belongs to another index; {REBUILD}")
        return found


def new_name(revision: int) -> str:
    """Return the name of a new index folder."""
    return f"g{revision}-{secrets.token_hex(4)}"


def build(database: Database, index: Path, model: str | None, dimensions: int) -> Path:
    """Build a new index folder from *database*, and return it; `make_current` comes after it.

    The caller holds the catalog's lock. The current folder is kept; older folders and leftovers of
    interrupted builds are removed.
    """
    private_folder(index)
    _remove_leftovers(index)
    revision = database.revision
    folder = index / new_name(revision)
    private_folder(folder)
    try:
        records = write_rows(database, folder, model, dimensions)
        manifest = Manifest(
            model=model, dimensions=dimensions if model else 0, records=records,
            revision=revision, edition=starter_edition(), files=_sync_files(folder),
        )  # fmt: skip
        text = json.dumps({"format": FORMAT, "version": VERSION, **manifest._asdict()}, indent=1)
        _write_durably(folder / "manifest.json", text)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # the folder may have filled the disk
        raise
    return folder


def make_current(folder: Path) -> None:
    """Let readers open this index folder from now on.

    Until then they open the old one, which is kept for those that have it open. A build that is
    killed before leaves nothing but a folder that the next one removes.
    """
    _write_durably(folder.parent / POINTER, folder.name)


@contextmanager
def install(complete: Path, index: Path, name: str) -> Generator[None]:
    """Move a complete folder into *index*, and make it the current one at the end of the block.

    The caller holds the catalog's lock. If the block raises an exception, the folder is moved back.
    """
    private_folder(index)
    _remove_leftovers(index)
    complete.replace(index / name)
    try:
        pointer = _write_aside(index / POINTER, name)
        yield
    except BaseException:
        (index / name).replace(complete)
        raise
    with_retries(lambda: pointer.replace(index / POINTER))


def _check_files(folder: Path, manifest: Manifest) -> None:
    for name, (size, expected) in manifest.files.items():
        path = folder / name
        with reading(path):
            found = path.stat().st_size
            is_intact = found > LARGEST_CHECKED or checksum(path) == expected
        if found != size:
            raise CatalogUnavailableError(
                f"{path} has {found} bytes where {size} are expected; {REBUILD}"
            )
        if not is_intact:
            raise CatalogUnavailableError(f"{path} is damaged; {REBUILD}")


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file, or 0 for one above `LARGEST_CHECKED`."""
    return zlib.crc32(path.read_bytes()) if path.stat().st_size <= LARGEST_CHECKED else 0


def _sync_files(folder: Path) -> dict[str, tuple[int, int]]:
    files: dict[str, tuple[int, int]] = {}
    restrict(folder)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(".lock"):
            with path.open("rb+") as file:
                os.fsync(file.fileno())
            name = path.relative_to(folder).as_posix()
            files[name] = path.stat().st_size, checksum(path)
    return files


def _write_durably(path: Path, text: str) -> None:
    temporary = _write_aside(path, text)
    with_retries(lambda: temporary.replace(path))


def _write_aside(path: Path, text: str) -> Path:
    """Write a temporary file that can replace *path*, and return its path."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    with open_private(temporary) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _remove_leftovers(index: Path) -> None:
    # A search that opens a folder while two builds end fails once; the next one opens the new
    # folder.
    keep = {POINTER}
    with suppress(CatalogUnavailableError):
        keep.add(current_folder(index).name)
    for path in index.iterdir():
        if path.name in keep:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # another process may hold it on Windows
        else:
            path.unlink(missing_ok=True)
