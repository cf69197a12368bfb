"""Which files may be read as resumes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from standards_mcp import InvalidInputError, NotFoundError


def readable_path(input_path: str, roots: Sequence[Path]) -> Path:
    """Return the real path of a file, symbolic links followed.

    Args:
        roots: Absolute folders, in which it must lie.

    Raises:
        InvalidInputError: It may not be read.
        NotFoundError: There cannot be such a file.
    """
    path = Path(input_path)
    if not path.is_absolute():
        raise InvalidInputError(f"input_path must be an absolute path, not {input_path!r}.")
    try:
        real = path.resolve()
        is_inside = any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        raise failed_to_open(input_path) from error
    if not is_inside or any(part.startswith(".") for part in real.parts):
        folders = ", ".join(map(str, roots))
        raise InvalidInputError(
            f"Resumes are read from {folders} only, and never from hidden folders. "
            "Move the file, or let plugins.career.resume_roots name its folder."
        )
    return real


def read_bytes(path: Path, input_path: str, most: int) -> bytes:
    """Return what is in a file.

    Args:
        input_path: What errors call it.
        most: How many bytes it may have.

    Raises:
        InvalidInputError: It is empty or too large.
        NotFoundError: It cannot be read.
    """
    try:
        if not path.is_file():  # a pipe would make its reader wait
            raise failed_to_open(input_path)
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise failed_to_open(input_path) from error
    if len(data) > most:
        raise InvalidInputError(
            f"The file has more than {most:,} bytes, which plugins.career.max_resume_bytes limits."
        )
    if not data:
        raise InvalidInputError("Empty input data")
    return data


def failed_to_open(input_path: str) -> NotFoundError:
    """Return the error for a file that cannot be read."""
    return NotFoundError(f"Ingestion failed: Failed to open file: {input_path}")
