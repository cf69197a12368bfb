"""Find the current index folder and read its manifest, without importing NumPy.

index/current                 a text file with the name of the current folder
index/g<revision>-<random>/   an index, complete and never changed
manifest.json               see `Manifest`
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from standards_mcp_catalog.errors import CatalogUnavailableError

FORMAT = "standards-mcp-index"
VERSION = 6
REBUILD = "run `standards-mcp data build`"
POINTER = "current"
_PAUSES = (0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.3)
_T = TypeVar("_T")
FOLDER_NAME = re.compile(r"g\d+-[0-9a-f]{8}")


class Manifest(NamedTuple):
    """Contents and checksums of an index folder.

    Attributes:
        model: The name of the encoder of the vectors, or None for an index without vectors.
        revision: The revision of the database that the index was built from.
        edition: The edition of the starter set whose texts and phrases the index has.
        files: The size in bytes and the `generation.checksum` of every other file of the folder,
            by relative path.
    """

    model: str | None
    dimensions: int
    records: int
    revision: int
    edition: str
    files: Mapping[str, Sequence[int]]


def current_folder(index: Path) -> Path:
    """Return the current folder.

    Raises:
        CatalogUnavailableError: The index is missing, or the pointer is damaged.
    """
    pointer = index / POINTER
    with reading(pointer):
        name = with_retries(lambda: pointer.read_text("utf-8", "replace")).strip()
    if not FOLDER_NAME.fullmatch(name):
        raise CatalogUnavailableError(f"{pointer} is not a pointer to an index; {REBUILD}")
    return index / name


def pointer_stamp(index: Path) -> tuple[int, int] | None:
    """Return a stamp that changes with the current folder, or None without a current folder."""
    try:
        status = (index / POINTER).stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of an index folder.

    Raises:
        CatalogUnavailableError: The manifest is missing, damaged, or of another format.
    """
    path = folder / "manifest.json"
    with reading(path):
        data = json.loads(path.read_text("utf-8"))
        found = data.pop("format"), data.pop("version")
        if found != (FORMAT, VERSION):
            raise CatalogUnavailableError(f"{path} is of the format {found}; {REBUILD}")
        return Manifest(**data)


@contextmanager
def reading(path: Path) -> Generator[None, None, None]:
    """Raise `CatalogUnavailableError` in place of any error in the block, which reads *path*.

    NumPy and zipfile raise exceptions of many types. tantivy panics on unexpected data, and its
    PanicException derives from BaseException.
    """
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"
        if isinstance(error, CatalogUnavailableError) or not (
            is_panic or isinstance(error, Exception)
        ):
            raise
        raise CatalogUnavailableError(f"cannot read {path}: {error}; {REBUILD}") from error


def with_retries(call: Callable[[], _T]) -> _T:
    """Return the result of *call*, and retry it for a second after a PermissionError.

    Windows forbids replacing a file that another process reads at this moment, and reading a file
    that is being replaced.

    Raises:
        PermissionError: The last attempt failed, too.
    """
    for pause in _PAUSES:
        try:
            return call()
        except PermissionError:
            time.sleep(pause)
    return call()
