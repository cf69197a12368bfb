"""What describes a dataset, and where its files are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias, cast

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from .errors import DatasetError

MAX_BYTES: Final = 10_240
NAME: Final = "manifest.json"
ENDING: Final = ".manifest.json"
_ID: Final = r"^[a-z0-9-]{1,64}$"
_INDEX_ENDINGS: Final = (".index", ".faiss")

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, size and time of change of a file: another stamp, another content."""


class Manifest(BaseModel):
    """A dataset: its name, and where its index and its metadata are.

    Attributes:
        id: What searches name it by.
        name: What people call it.
        description: What it is about, for whoever chooses a dataset.
        index: A FAISS index, or a folder with one. A relative path starts at the manifest.
        metadata: A JSON file with the documents, in the order of the index.
        default_top_k: How many results a search brings that does not say.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, title="Manifest")

    id: Annotated[str, Field(pattern=_ID, description="What searches name it.")]
    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=128),
        Field(description="What people call it."),
    ]
    description: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=512),
        Field(description="What it is about."),
    ]
    index: Annotated[
        str,
        Field(min_length=1, description="A FAISS index, or a folder with *.index or *.faiss."),
    ]
    metadata: Annotated[str, Field(min_length=1, description="A JSON file with the documents.")]
    default_top_k: Annotated[
        int,
        Field(ge=1, le=100, alias="defaultTopK", description="Results of a search, if not said."),
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
    """The files of a dataset as they were found.

    Attributes:
        stamps: Those of index and metadata.
    """

    index: Path
    metadata: Path
    stamps: tuple[Stamp, Stamp]


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset whose manifest and paths are right; nobody has looked into its files yet."""

    path: Path
    manifest: Manifest
    files: Files


def manifest_of(values: Mapping[str, object]) -> Manifest:
    """Check what a manifest says.

    Raises:
        DatasetError: It breaks a rule.
    """
    if missing := [key for key in _REQUIRED if key not in values]:
        raise DatasetError("manifest", f"Required: {', '.join(missing)}")
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        wrong = {str(each["loc"][0]) for each in error.errors(include_input=False)}
        key = next(key for key in _EXPECTED if key in wrong)
        raise DatasetError("manifest", f"Invalid {key}: {_EXPECTED[key]}") from error


def id_in(values: Mapping[str, object]) -> str | None:
    """Return the id in a manifest that may break other rules, None if it has none."""
    found = values.get("id")
    return found if isinstance(found, str) and re.fullmatch(_ID, found) else None


def read_values(path: Path) -> Mapping[str, object]:
    """Return what a manifest says, not checked.

    Raises:
        DatasetError: It is no JSON object, or cannot be read.
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
        roots: The resolved folders that the manifest and its files must be in.

    Raises:
        DatasetError: A file is missing, or elsewhere.
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
        for found in sorted(path.glob(f"*{ending}")):
            if found.is_file():
                return _resolved("index", found, roots)
    raise DatasetError("index", f"No FAISS index file (*.index, *.faiss) in {path}")


def stamp(path: Path) -> Stamp:
    """Return what tells whether a file is still the same."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
