"""Reads Word documents, in a worker process, as Markdown."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any, Final, cast

import docx
from docx.document import Document as WordDocument
from docx.oxml.table import CT_Tbl
from docx.table import Table

from standards_mcp_knowledge.building.document import Document, DocumentError, Outline, one_line

_LARGEST: Final = 200_000_000
"""Bytes of all parts together, unpacked."""
_MOST_PARTS: Final = 10_000
_HEADING: Final = re.compile(r"Heading ([1-9])")


def read_docx(path: Path) -> Document:
    """Return the sections of a document: its paragraphs, lists and tables in order.

    Raises:
        DocumentError: It is damaged or too large.
    """
    try:
        _check_size(path)
        return _read(docx.Document(str(path)))
    except (DocumentError, OSError):
        raise
    except Exception as error:  # damage makes the libraries below raise nearly anything
        raise DocumentError("is damaged, or is no Word document") from error


def _check_size(path: Path) -> None:
    """Refuse what would fill the memory. No part is unpacked beyond the size that it states."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if len(parts) > _MOST_PARTS or sum(part.file_size for part in parts) > _LARGEST:
        raise DocumentError(f"unpacks to more than {_LARGEST // 1_000_000} MB; split it")


def _read(word: WordDocument) -> Document:
    outline = Outline(word.core_properties.title)
    # Paragraph.style goes through all styles each time.
    styles = {style.style_id: style.name or "" for style in word.styles}
    body: Any = cast("Any", word).element.body  # of no declared type
    for element in body.inner_content_elements:
        if isinstance(element, CT_Tbl):
            outline.add(_rows(Table(element, word)))
        else:
            _add(outline, element.text, styles.get(element.style, ""))
    return outline.document()


def _add(outline: Outline, text: str, style: str) -> None:
    heading = _HEADING.fullmatch(style)
    if not text.strip():
        return
    if heading or style == "Title":
        level = int(heading[1]) if heading else 1
        outline.start(text, level, f"{'#' * min(level, 6)} {one_line(text)}")
    else:
        outline.add(f"- {text}" if style.startswith("List") else text)


def _rows(table: Table) -> str:
    rows = ([one_line(cell.text) for cell in row.cells] for row in table.rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
