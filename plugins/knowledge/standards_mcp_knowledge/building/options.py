"""Options and report of a build, and the interface of its worker processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from standards_mcp import StandardsMcpError
from standards_mcp_knowledge.encoders import DEFAULT_MODEL
from standards_mcp_knowledge.manifests import Manifest

T = TypeVar("T")
Vectors = npt.NDArray[np.float32]


class BuildError(StandardsMcpError):
    """A dataset cannot be built; the earlier one is unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Options of a build.

    Attributes:
        manifest: The manifest to write.
        model: Name of the encoder, stored with the vectors.
        chunk_words: The most words of a passage.
        overlap_words: Number of words that a passage repeats from the previous one of its section;
            at most half of *chunk_words*.
        include: Globs of paths relative to the folder; empty for all files. ``*`` also matches
            ``/``.

    Raises:
        ValueError: A number of words is out of bounds.
    """

    manifest: Manifest
    model: str = DEFAULT_MODEL
    chunk_words: int = 200
    overlap_words: int = 30
    include: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the numbers of words."""
        if not 10 <= self.chunk_words <= 2000:  # noqa: PLR2004
            raise ValueError("chunk words: use 10 to 2000")
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
    path: str
    files: int
    chunks: int
    unchanged: int
    skipped: list[Skipped]


class BuildWorkers(Protocol):
    """Runs the heavy functions of a build in worker processes.

    Exceptions that are not listed below end the build, and reach its caller unchanged.
    """

    def encode(self, texts: Sequence[str], model: str) -> Vectors:
        """Return a row of length 1 for each text; *texts* is not empty."""
        ...

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function of `worker`.

        Raises:
            DocumentError: The file cannot be read as a document.
            OSError: The file cannot be read or written, or the worker crashes or takes too long.
        """
        ...
