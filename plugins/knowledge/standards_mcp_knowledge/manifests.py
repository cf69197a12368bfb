"""Manifests of datasets: read and check them, and find the files of a dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, cast

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

Kind: TypeAlias = Literal["manifest", "duplicate", "path", "index", "metadata", "encoder", "worker"]
"""The part of a dataset that has an error."""


_LONGEST: Final = 2000


def printable_line(text: str) -> str:
    """Return a text for logs and clients: printable, on one line, not too long."""
    text = text.encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else " " for char in text)[:_LONGEST]


class DatasetError(Exception):
    """A dataset breaks a rule and is left out.

    Attributes:
        kind: The part that has an error.
        reason: The error, in one line.
        is_passing: True if it can pass without a change of files, as with an encoder at an address.
    """

    def __init__(self, kind: Kind, reason: str, *, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.kind: Kind = kind
        self.reason = reason
        self.is_passing = is_passing

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all attributes; the error comes from a worker."""
        state = {"is_passing": self.is_passing, "__notes__": getattr(self, "__notes__", [])}
        return type(self), (self.kind, self.reason), state


MAX_BYTES: Final = 10_240
NAME: Final = "manifest.json"
ENDING: Final = ".manifest.json"
_ID: Final = r"^[a-z0-9-]{1,64}$"
_INDEX_ENDINGS: Final = (".index", ".faiss")

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, size and time of change of a file; a new content has a new stamp."""


class Manifest(BaseModel):
    """The description of a dataset, with the paths of its index and its metadata.

    Attributes:
        id: Its id in searches.
        name: Its name for people.
        description: Its subject.
        index: A FAISS index, or a folder with one. A relative path starts at the manifest.
        metadata: A JSON file with the documents, in the order of the index.
        default_top_k: Number of results of a search without topK.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, title="Manifest")

    id: Annotated[str, Field(pattern=_ID, description="Its id in searches.")]
    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=128),
        Field(description="Its name for people."),
    ]
    description: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=512),
        Field(description="Its subject."),
    ]
    index: Annotated[
        str,
        Field(min_length=1, description="A FAISS index, or a folder with *.index or *.faiss."),
    ]
    metadata: Annotated[str, Field(min_length=1, description="A JSON file with the documents.")]
    default_top_k: Annotated[
        int,
        Field(ge=1, le=100, alias="defaultTopK", description="Results of a search without topK."),
    ] = 5


_EXPECTED: Final = {
    "id": "1 to 64 characters of a-z, 0-9 and -",
    "name": "a text of 1 to 128 characters",
    "description": "a text of 1 to 512 characters",
    "index": "a path as text",
    "metadata": "a path as text",
    "defaultTopK": "a whole number from 1 to 100",
}
_REQUIRED: Final = tuple(key for key in _EXPECTED if key != "defaultTopK")


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
    """A dataset with a valid manifest and valid paths; its files have not been opened."""

    path: Path
    manifest: Manifest
    files: Files


def manifest_of(values: Mapping[str, object]) -> Manifest:
    """Return a manifest after checking its values.

    Raises:
        DatasetError: It breaks a rule.
    """
    if missing := [key for key in _REQUIRED if key not in values]:
        raise DatasetError("manifest", f"Required: {', '.join(missing)}")
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        invalid = {str(entry["loc"][0]) for entry in error.errors(include_input=False)}
        key = next(key for key in _EXPECTED if key in invalid)
        raise DatasetError("manifest", f"Invalid {key}: {_EXPECTED[key]}") from error


def id_in(values: Mapping[str, object]) -> str | None:
    """Return the id of a manifest that may break other rules; None if the id is invalid."""
    value = values.get("id")
    return value if isinstance(value, str) and re.fullmatch(_ID, value) else None


def read_values(path: Path) -> Mapping[str, object]:
    """Return the unchecked values of a manifest.

    Raises:
        DatasetError: It is not a JSON object, or cannot be read.
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


def find_files(path: Path, manifest: Manifest, roots: Sequence[Path]) -> Source:
    """Return the dataset of a manifest with its files.

    Args:
        path: The manifest.
        roots: The resolved folders that must contain the manifest and its files.

    Raises:
        DatasetError: A file is missing, or outside of the roots.
    """
    _resolved("manifest", path, roots)
    index = _index_file(_resolved("index", path.parent / manifest.index, roots), roots)
    metadata = _resolved("metadata", path.parent / manifest.metadata, roots)
    if not metadata.is_file():
        raise DatasetError("metadata", f"Metadata file not found: {metadata}")
    try:
        stamps = (stamp(index), stamp(metadata))
    except OSError as error:
        raise DatasetError("path", f"{error.filename} cannot be read: {error.strerror}") from error
    return Source(path, manifest, Files(index, metadata, stamps))


def _resolved(key: str, path: Path, roots: Sequence[Path]) -> Path:
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
    if path.suffix in _INDEX_ENDINGS and not path.is_dir():
        raise DatasetError("index", f"Index file not found: {path}")
    if not path.is_dir():
        raise DatasetError("index", f"Index directory not found: {path}")
    for ending in _INDEX_ENDINGS:
        for file in sorted(path.glob(f"*{ending}")):
            if file.is_file():
                return _resolved("index", file, roots)
    raise DatasetError("index", f"No FAISS index file (*.index, *.faiss) in {path}")


def stamp(path: Path) -> Stamp:
    """Return the stamp of a file, to detect changes."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
