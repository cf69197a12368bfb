"""Options and report of a build."""

from __future__ import annotations

from dataclasses import dataclass

from standards_mcp import StandardsMcpError
from standards_mcp_knowledge.encoders import DEFAULT_MODEL
from standards_mcp_knowledge.manifests import Manifest


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
