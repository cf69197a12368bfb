"""Readers of documents, by the endings of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from standards_mcp_knowledge.building.document import Document, DocumentError
from standards_mcp_knowledge.building.work import Work

from .decoding import decode
from .html import read_html
from .markdown import read_markdown
from .plain import read_text
from .rst import read_rst

_TEXTS: Final[Mapping[str, Callable[[bytes], Document]]] = {
    ".md": lambda data: read_markdown(decode(data)),
    ".markdown": lambda data: read_markdown(decode(data)),
    ".html": read_html,
    ".htm": read_html,
    ".txt": lambda data: read_text(decode(data)),
    ".rst": lambda data: read_rst(decode(data)),
}
_PACKED: Final = (".pdf", ".docx")
SUFFIXES: Final = frozenset((*_TEXTS, *_PACKED))
"""The endings that are read, in lower case."""
MEGABYTE: Final = 1_000_000
_LARGEST_TEXT: Final = 10 * MEGABYTE
_LARGEST_PACKED: Final = 100 * MEGABYTE


def read_document(path: Path, work: Work) -> Document:
    """Return the text of a file, one section at least.

    Raises:
        DocumentError: It cannot be read, or there is no text in it.
    """
    try:
        document = _read(path, work)
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror or error}") from error
    if not document.sections:
        raise DocumentError("has no text")
    return document


def _read(path: Path, work: Work) -> Document:
    suffix = path.suffix.lower()
    largest = _LARGEST_PACKED if suffix in _PACKED else _LARGEST_TEXT
    if path.stat().st_size > largest:
        raise DocumentError(f"is larger than {largest // MEGABYTE} MB; split it")
    if suffix == ".pdf":
        return work.read_pdf(path)
    if suffix == ".docx":
        return work.read_docx(path)
    with path.open("rb") as file:
        return _TEXTS[suffix](file.read(largest))  # it may have grown since
