"""Read Word files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from io import BytesIO
from itertools import count
from typing import Any, Final, TypeAlias

import docx
from docx.oxml.table import CT_Row, CT_Tc
from docx.oxml.text.paragraph import CT_P

from .document import Block, Document, DocumentError, Outline, one_line

Cell: TypeAlias = tuple[int, int]
_MAX_PARTS: Final = 10_000
_OLE: Final = bytes.fromhex("d0cf11e0a1b11ae1")
"""The first bytes of protected documents, and of documents of Word 2003 and earlier."""
_NO_TITLE: Final = "Word Document"
"""The library's title for files without properties, such as exports of other programs."""
_HEADING: Final = re.compile(r"Heading ([1-9])")
_DEEPEST_STYLE: Final = 20
_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH: Final = f"{_WORD}p"
_TABLE: Final = f"{_WORD}tbl"
_BOX: Final = f"{_WORD}txbxContent"
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def read_docx(data: bytes, max_unpacked: int) -> Document:
    """Read a Word file: paragraphs, lists and tables, also in content controls and text boxes.

    Args:
        max_unpacked: The largest size of all parts together, in bytes.

    Raises:
        DocumentError: The file is protected or too large.
        Exception: The file is damaged; the library raises errors of nearly any type.
    """
    if data.startswith(_OLE):
        raise DocumentError("it is protected by a password, or in the .doc format of old programs")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = archive.infolist()
    # `zipfile` unpacks no part beyond its stated size.
    if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > max_unpacked:
        raise DocumentError(f"it unpacks to more than {max_unpacked // 1_000_000} MB; split it")
    word: Any = docx.Document(BytesIO(data))
    # Older programs show this copy of a text box; newer ones show the box itself.
    for fallback in list(word.element.body.iter(_FALLBACK)):
        fallback.getparent().remove(fallback)
    reader = _WordReader(word)
    reader.add(word.element.body)
    return reader.outline.document()


class _WordReader:
    """Adds the elements of a Word document to an outline."""

    def __init__(self, word: Any) -> None:
        title = word.core_properties.title
        self.outline = Outline("" if title == _NO_TITLE else title)
        self._styles: dict[str, Any] = {style.style_id: style for style in word.styles}
        self._marks: dict[str, str] = {}
        self._numbers = count()

    def add(self, elements: Iterable[Any], row: int = 0, cell: Cell | None = None) -> None:
        """Add the paragraphs in these elements, in their order.

        Args:
            row: The number of the table row that contains the elements.
            cell: The cell that contains the elements; None outside of tables.
        """
        for element in elements:
            if isinstance(element, CT_P):
                self._add_paragraph(element, cell)
            elif isinstance(element, CT_Row):
                self.add(element, next(self._numbers))
            elif isinstance(element, CT_Tc):
                # A table in the cell follows the text of the cell.
                children: list[Any] = list(element)
                tables = [child for child in children if child.tag == _TABLE]
                texts = [child for child in children if child.tag != _TABLE]
                self.add(texts, row, (row, next(self._numbers)))
                self.add(tables)
            else:
                self.add(element, row, cell)

    def _add_paragraph(self, paragraph: Any, cell: Cell | None) -> None:
        """Add the text of a paragraph, then the texts of its text boxes."""
        runs = paragraph.iter(f"{_WORD}r")
        own = (run for run in runs if next(run.iterancestors(_PARAGRAPH)) is paragraph)
        text = "".join(run.text for run in own)
        mark = self._mark_of(paragraph)
        if cell is None and mark.startswith("#") and text.strip():
            self.outline.start(text, mark.count("#"), Block(one_line(text), mark))
        else:
            self.outline.add(text, mark, cell=cell)
        for box in paragraph.iter(_BOX):
            # The outer box adds the text of a nested box.
            if next(box.iterancestors(_PARAGRAPH, _BOX)) is paragraph:
                self.add(box, cell=cell)

    def _mark_of(self, paragraph: Any) -> str:
        """Return the Markdown mark of a paragraph, by its style and its numbering."""
        name = paragraph.style or ""
        if name not in self._marks:
            self._marks[name] = _mark_of_style(self._styles.get(name))
        is_item = paragraph.pPr is not None and paragraph.pPr.numPr is not None
        return self._marks[name] or ("- " if is_item else "")


def _mark_of_style(style: Any) -> str:
    for _ in range(_DEEPEST_STYLE):
        if style is None:
            break
        if heading := _HEADING.fullmatch(style.name or ""):
            return f"{'#' * min(int(heading[1]), 6)} "
        if style.name == "Title":
            return "# "
        properties = style.element.pPr
        if (style.name or "").startswith("List") or (
            properties is not None and properties.numPr is not None
        ):
            return "- "
        style = style.base_style
    return ""
