"""What a build is told, and what it tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from standards_mcp import StandardsMcpError

DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_ID: Final = re.compile(r"[a-z0-9-]{1,64}")
_LONGEST_NAME: Final = 128
_LONGEST_DESCRIPTION: Final = 512
_CHUNK_WORDS: Final = range(10, 2001)


class BuildError(StandardsMcpError):
    """A dataset cannot be built; what was in its place is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How a dataset is made of a folder.

    Attributes:
        model: Name of the encoder, written down with the vectors.
        chunk_words: The most words of a passage.
        overlap_words: How many words a passage repeats of the one before it in its section.
        include: Globs of paths relative to the folder; without one, all files are read. ``*``
            also stands for ``/``.

    Raises:
        ValueError: A value is out of bounds; the text says which and what is allowed.
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
    """A file or folder that is not in the dataset; folders end with ``/``."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What has been built.

    Attributes:
        path: The dataset's folder.
        files: How many files have passages in it.
        chunks: How many passages it has. With 0 of them nothing was written.
        unchanged: How many of them kept the vectors of an earlier build.
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
