"""Which files may be read as resumes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from standards_mcp import InvalidInputError, NotFoundError

Roots: TypeAlias = Sequence[Path] | None
"""Absolute folders in which files must lie; None for any file, which a person has named."""
_WHERE: Final = (
    "It is missing or cannot be read, or it is not in a folder of plugins.career.resume_roots, or "
    "in a hidden folder. Check the path, or move the file there."
)
_NO_ROOTS: Final = (
    "No folder of resumes is configured. Set plugins.career.resume_roots to your folders, such as "
    '["~/resumes"], or run `standards-mcp career ingest PATH`, which reads any file.'
)


def readable_path(input_path: str, roots: Roots) -> Path:
    """Return the real path of a file, symbolic links followed.

    Raises:
        InvalidInputError: The path is not absolute.
        NotFoundError: There cannot be such a file, or it may not be read. Callers may be remote:
            the answer does not tell whether a file outside of the roots exists.
    """
    path = Path(input_path)
    if not path.is_absolute():
        raise InvalidInputError(f"input_path must be an absolute path, not {input_path!r}.")
    if roots is not None and not roots:
        raise failed_to_open(input_path, roots)
    try:
        real = path.resolve()
        is_inside = roots is None or any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        raise failed_to_open(input_path, roots) from error
    is_hidden = roots is not None and any(part.startswith(".") for part in real.parts)
    if is_hidden or not is_inside:
        raise failed_to_open(input_path, roots)
    return real


def read_bytes(path: Path, input_path: str, most: int, roots: Roots) -> bytes:
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
            raise failed_to_open(input_path, roots)
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise failed_to_open(input_path, roots) from error
    if len(data) > most:
        raise InvalidInputError(
            f"The file has more than {most:,} bytes, which plugins.career.max_resume_bytes limits."
        )
    if not data:
        raise InvalidInputError("Empty input data")
    return data


def failed_to_open(input_path: str, roots: Roots) -> NotFoundError:
    """Return the error for a file that cannot be read, the same for each reason."""
    message = f"Ingestion failed: Failed to open file: {input_path}"
    if roots is None:
        return NotFoundError(message)
    return NotFoundError(f"{message}. {_WHERE if roots else _NO_ROOTS}")
