"""Manifests of datasets: read and check them, and find the files of a dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, cast

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

ErrorKind: TypeAlias = Literal[
    "manifest", "duplicate", "path", "index", "metadata", "encoder", "endpoint", "worker"
]
"""The faulty part of a dataset; an ``endpoint`` error may be over at the next search."""
Stamp: TypeAlias = tuple[int, int, int]
"""Inode, size and modification time of a file, to detect new content."""

MAX_BYTES: Final = 10_240
MANIFEST_NAME: Final = "manifest.json"
_MANIFEST_SUFFIX: Final = ".manifest.json"
_INDEX_SUFFIXES: Final = (".index", ".faiss")
_ID: Final = r"^[a-z0-9-]{1,64}$"
_LONGEST_LINE: Final = 2000
_EXPECTED_VALUES: Final = {
    "id": "1 to 64 characters of a-z, 0-9 and -",
    "name": "a text of 1 to 128 characters",
    "description": "a text of 1 to 512 characters",
    "index": "a path as text",
    "metadata": "a path as text",
    "defaultTopK": "a whole number from 1 to 100",
}


class DatasetError(Exception):
    """A dataset breaks a rule, or its encoder fails.

    Attributes:
        kind: The faulty part.
        reason: The error, in one line.
    """

    def __init__(self, kind: ErrorKind, reason: str) -> None:
        # Exception gets both arguments, so that the error of a worker can be pickled.
        super().__init__(kind, reason)
        self.kind: ErrorKind = kind
        self.reason = reason

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


_Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Manifest(BaseModel):
    """The description of a dataset, with the paths of its index and its metadata."""

    model_config = ConfigDict(strict=True, frozen=True, use_attribute_docstrings=True)

    id: str = Field(pattern=_ID)
    """The dataset's id in searches."""
    name: _Text = Field(max_length=128)
    """The dataset's name for people."""
    description: _Text = Field(max_length=512)
    """The dataset's subject."""
    index: str = Field(min_length=1)
    """A FAISS index, or a folder with one. A relative path starts at the manifest."""
    metadata: str = Field(min_length=1)
    """A JSON file with the documents, in the order of the index."""
    default_top_k: int = Field(default=5, ge=1, le=100, alias="defaultTopK")
    """Number of results of a search without topK."""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Manifest:
        """Return the manifest with these values.

        Raises:
            DatasetError: A value is missing or invalid.
        """
        missing = [key for key in _EXPECTED_VALUES if key != "defaultTopK" and key not in values]
        if missing:
            raise DatasetError("manifest", f"Required: {', '.join(missing)}")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            invalid = {str(entry["loc"][0]) for entry in error.errors(include_input=False)}
            key = next(key for key in _EXPECTED_VALUES if key in invalid)
            raise DatasetError("manifest", f"Invalid {key}: {_EXPECTED_VALUES[key]}") from error


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a dataset.

    Attributes:
        stamps: The stamps of index and metadata.
    """

    index: Path
    metadata: Path
    stamps: tuple[Stamp, Stamp]


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset with a valid manifest and valid paths.

    Attributes:
        path: The manifest file.
    """

    path: Path
    manifest: Manifest
    files: Files

    @property
    def id(self) -> str:
        """The dataset's id in searches."""
        return self.manifest.id


@dataclass(frozen=True, slots=True)
class Excluded:
    """A dataset that is not served.

    Attributes:
        id: The id of the manifest, or the name of the folder.
        path: The manifest file.
        reason: The error, in one line.
        manifest: The manifest, if it is valid.
        retry_at: The event loop's time to check unchanged files again; None for never.
        cause: The exception to log with its traceback.
    """

    id: str
    path: Path
    kind: ErrorKind
    reason: str
    manifest: Manifest | None = None
    retry_at: float | None = None
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Make id and reason printable: they may contain file names in any encoding."""
        object.__setattr__(self, "id", printable_line(self.id))
        object.__setattr__(self, "reason", printable_line(self.reason))


def manifests_in(root: Path) -> list[Path]:
    """Return the sorted paths of the manifests in a folder; [] if the folder is missing."""
    paths = [*root.glob(f"*/{MANIFEST_NAME}"), *root.glob(f"*{_MANIFEST_SUFFIX}")]
    # Unlike Path.is_file, os.path.isfile returns False for unreadable folders.
    return sorted(path for path in paths if os.path.isfile(path))  # noqa: PTH113


def read_source(path: Path, roots: Sequence[Path]) -> Source | Excluded:
    """Return the dataset of a manifest after checking its values and paths.

    Args:
        roots: The folders that must contain the manifest and its files.
    """
    real_roots = [Path(os.path.realpath(root)) for root in roots]
    name = (
        path.parent.name if path.name == MANIFEST_NAME else path.name.removesuffix(_MANIFEST_SUFFIX)
    )
    manifest: Manifest | None = None
    try:
        values = read_values(path)
        declared_id = values.get("id")
        if isinstance(declared_id, str) and re.fullmatch(_ID, declared_id):
            name = declared_id
        manifest = Manifest.of(values)
        return Source(path, manifest, _find_files(path, manifest, real_roots))
    except DatasetError as error:
        return Excluded(name, path, error.kind, error.reason, manifest, cause=error.__cause__)
    except OSError as error:
        return Excluded(name, path, "path", _read_failure(error), manifest, cause=error)


def stamps_of(index: Path, metadata: Path) -> tuple[Stamp, Stamp]:
    """Return the stamps of the files of a dataset, to detect changes.

    Raises:
        DatasetError: A file is missing or cannot be read.
    """
    try:
        statuses = index.stat(), metadata.stat()
    except OSError as error:
        raise DatasetError("path", _read_failure(error)) from error
    one, other = ((status.st_ino, status.st_size, status.st_mtime_ns) for status in statuses)
    return one, other


def read_values(path: Path) -> Mapping[str, object]:
    """Return the unchecked values of a manifest.

    Raises:
        DatasetError: The file is not a JSON object, is too large, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DatasetError("manifest", f"Manifest cannot be read: {error.strerror}") from error
    if len(text) > MAX_BYTES:
        raise DatasetError("manifest", f"Manifest exceeds maximum size of {MAX_BYTES} bytes")
    try:
        values = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise DatasetError("manifest", f"Manifest is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise DatasetError("manifest", "Manifest is not valid JSON: it is not an object")
    return cast("dict[str, object]", values)


def _find_files(path: Path, manifest: Manifest, roots: Sequence[Path]) -> Files:
    """Return the files of a manifest.

    Args:
        roots: The resolved folders that must contain the manifest and its files.

    Raises:
        DatasetError: A file is missing, or outside of the roots.
    """
    _resolve("manifest", path, roots)
    index = _index_file(_resolve("index", path.parent / manifest.index, roots), roots)
    metadata = _resolve("metadata", path.parent / manifest.metadata, roots)
    if not metadata.is_file():
        raise DatasetError("metadata", f"Metadata file not found: {metadata}")
    return Files(index, metadata, stamps_of(index, metadata))


def _resolve(key: str, path: Path, roots: Sequence[Path]) -> Path:
    try:
        real = Path(os.path.realpath(path))
    except ValueError:
        raise DatasetError("manifest", f"Invalid {key}: a path as text") from None
    if not any(real.is_relative_to(root) for root in roots):
        raise DatasetError("path", f"Path leaves the dataset folders: {key}")
    return real


def _index_file(path: Path, roots: Sequence[Path]) -> Path:
    if path.is_file():
        return path
    if path.suffix in _INDEX_SUFFIXES and not path.is_dir():
        raise DatasetError("index", f"Index file not found: {path}")
    if not path.is_dir():
        raise DatasetError("index", f"Index directory not found: {path}")
    for ending in _INDEX_SUFFIXES:
        for file in sorted(path.glob(f"*{ending}")):
            if file.is_file():
                return _resolve("index", file, roots)
    raise DatasetError("index", f"No FAISS index file (*.index, *.faiss) in {path}")


def _read_failure(error: OSError) -> str:
    return f"{error.filename} cannot be read: {error.strerror}"


def printable_line(text: str) -> str:
    """Return a text for logs and clients: printable, on one line, not too long."""
    text = text.encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else " " for char in text)[:_LONGEST_LINE]
