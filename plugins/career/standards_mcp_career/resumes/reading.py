"""From the path of a resume to its text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from .extraction import check_extension, extract
from .hygiene import normalise
from .places import Roots, read_bytes, readable_path


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be read.

    Attributes:
        roots: Absolute folders, in which resumes lie; None for any file.
        most_bytes: The size of a file.
    """

    roots: Roots
    most_bytes: int


@dataclass(frozen=True, slots=True)
class ResumeText:
    """What a file says.

    Attributes:
        text: Normalised Markdown.
        method: The name of how it was extracted.
        path: The real one.
        file_hash: SHA-256 of the file's bytes, in hexadecimal digits.
    """

    text: str
    method: str
    path: Path
    file_hash: str


def read_resume(input_path: str, limits: Limits, *, marks_lists: bool = False) -> ResumeText:
    """Read a file.

    Args:
        marks_lists: Mark the headings and list items of a Word document, which it has as styles.

    Raises:
        InvalidInputError: It is no file that is read, or nothing can be read in it.
        NotFoundError: There is no such file.
    """
    path = readable_path(input_path, limits.roots)
    extension = path.suffix.lower()
    check_extension(extension)
    data = read_bytes(path, input_path, limits.most_bytes, limits.roots)
    extracted = extract(data, extension, marks_lists=marks_lists)
    file_hash = hashlib.sha256(data).hexdigest()
    return ResumeText(normalise(extracted.markdown), extracted.method, path, file_hash)
