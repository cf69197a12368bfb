"""Options and report of a build, and the work that it needs of another process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from standards_mcp import StandardsMcpError

from .document import Document

DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_ID: Final = re.compile(r"[a-z0-9-]{1,64}")
_LONGEST_NAME: Final = 128
_LONGEST_DESCRIPTION: Final = 512
_CHUNK_WORDS: Final = range(10, 2001)


class BuildError(StandardsMcpError):
    """A dataset cannot be built; the earlier one is unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Options of a build.

    Attributes:
        model: Name of the encoder, stored with the vectors.
        chunk_words: The most words of a passage.
        overlap_words: Number of words that a passage repeats of the one before it in its section.
        include: Globs of paths relative to the folder; empty for all files. ``*`` also matches
            ``/``.

    Raises:
        ValueError: A value is out of bounds; the text names it and its bounds.
    """

    id: str
    name: str
    description: str
    model: str = DEFAULT_MODEL
    chunk_words: int = 200
    overlap_words: int = 30
    include: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError("id: use 1 to 64 of the characters a-z, 0-9 and -")
        _check_length("name", self.name, _LONGEST_NAME)
        _check_length("description", self.description, _LONGEST_DESCRIPTION)
        if self.chunk_words not in _CHUNK_WORDS:
            least, most = _CHUNK_WORDS[0], _CHUNK_WORDS[-1]
            raise ValueError(f"chunk words: use {least} to {most}")
        if not 0 <= self.overlap_words <= self.chunk_words // 2:
            raise ValueError("overlap words: use 0 to half of the chunk words")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was left out; folders end with ``/``."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """The result of a build.

    Attributes:
        path: The dataset's folder.
        files: Number of files with passages.
        chunks: Number of passages. If it is 0, nothing was written.
        unchanged: Number of passages that kept the vectors of an earlier build.
    """

    id: str
    path: Path
    files: int
    chunks: int
    unchanged: int
    skipped: list[Skipped]


def _check_length(key: str, value: str, longest: int) -> None:
    if not 1 <= len(value.strip()) <= longest:
        raise ValueError(f"{key}: use 1 to {longest} characters")


Vectors = npt.NDArray[np.float32]


class Work(Protocol):
    """Heavy work, done in a worker process. All but `encode` are the functions of `worker`.

    Any other exception ends the build and reaches its caller unchanged.
    """

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row of length 1 for each text; *texts* has one text at least."""
        ...

    def read_pdf(self, path: Path) -> Document:
        """Read a PDF file.

        Raises:
            DocumentError: It cannot be read, also because the worker ended or took too long.
        """
        ...

    def read_docx(self, path: Path) -> Document:
        """Read a Word document. Raises as `read_pdf` does."""
        ...

    def read_vectors(self, path: Path) -> Vectors:
        """Return the vectors of an index that `write_index` wrote.

        Raises:
            OSError: It cannot be read, also because the worker ended or took too long.
        """
        ...

    def write_index(self, vectors: Vectors, path: Path) -> None:
        """Write a new file with an exact index by inner product.

        Raises:
            OSError: It cannot be written.
        """
        ...
