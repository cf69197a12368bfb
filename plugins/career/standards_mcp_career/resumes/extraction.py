"""From the bytes of a file to Markdown, by its extension."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from standards_mcp import InvalidInputError

from . import worker

_METHODS: Final[Mapping[str, str]] = {
    ".md": "md-pass-through-v1",
    ".markdown": "md-pass-through-v1",
    ".txt": "txt-wrap-v1",
    ".text": "txt-wrap-v1",
    ".docx": "docx-extract-v1",
    ".pdf": "pdf-text-extract-v1",
}
EXTENSIONS: Final = tuple(_METHODS)
"""The extensions that are read, in lower case."""
_PACKED: Final = (".docx", ".pdf")
_AS_IT_IS: Final = (".md", ".markdown")


class Extracted(NamedTuple):
    """The text of a resume, not normalised.

    Attributes:
        method: Its name, which has a version.
    """

    markdown: str
    method: str


def check_extension(extension: str) -> None:
    """Refuse files that are not read.

    Raises:
        InvalidInputError: The extension, in lower case, is none that is read.
    """
    if extension not in EXTENSIONS:
        raise InvalidInputError(
            f"A resume has one of these extensions: {', '.join(EXTENSIONS)}; "
            f"not {extension or 'none'}."
        )


def extract(data: bytes, extension: str, *, marks_lists: bool = False) -> Extracted:
    """Return what a file says.

    Args:
        extension: One of `EXTENSIONS`.
        marks_lists: Mark the headings and list items of a Word document.

    Raises:
        InvalidInputError: It says nothing, or cannot be read.
    """
    more = [worker.MARKED] if marks_lists else []
    text = _unpacked(data, extension, *more) if extension in _PACKED else _decoded(data)
    if not text.strip():
        raise _failed("it has no text; if it is scanned, let a program recognise its text")
    markdown = text if extension in _AS_IT_IS else f"# Resume\n\n{text}"
    return Extracted(markdown, _METHODS[extension])


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _failed("it is not UTF-8 text") from error


def _unpacked(data: bytes, *arguments: str) -> str:
    # Without -P, Python would import what lies in the working directory.
    command = [sys.executable, "-P", "-m", worker.__name__, *arguments]
    try:
        done = subprocess.run(  # noqa: S603  - a module of ours
            command, input=data, capture_output=True, timeout=worker.SECONDS, check=False
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise _failed(f"reading it takes longer than {worker.SECONDS} s") from error
    except ValueError as error:
        raise _failed("the file ends the process that reads it; it may be damaged") from error
    if "error" in found:
        raise _failed(found["error"])
    text: str = found["text"]
    return text


def _failed(why: str) -> InvalidInputError:
    return InvalidInputError(f"Extraction failed: {why}")
