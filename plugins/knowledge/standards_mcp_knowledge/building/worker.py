"""Read PDF and Word files, and read and write FAISS indexes, in a worker process.

The host imports this module to name its functions in requests, so each function imports its library
itself. A damaged file may crash the library, and the process with it.
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from .document import Document, DocumentError, Outline, one_line
from .options import Vectors

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from docx.table import Table

_MAX_PAGES: Final = 5_000
_MAX_CHARACTERS: Final = 20_000_000
_DEEPEST_BOOKMARK: Final = 15
_HYPHEN: Final = re.compile(r"[\x02\ufffe](\r\n)?")
"""PDFium's characters for the hyphen of a word that continues in the next line."""
_LARGEST_UNPACKED: Final = 200_000_000
"""Bytes of all parts of a Word document together."""
_MAX_PARTS: Final = 10_000
_HEADING: Final = re.compile(r"Heading ([1-9])")


def read_pdf(path: Path) -> Document:
    """Read a PDF file: one section for each page, with bookmark and page number as heading.

    Raises:
        DocumentError: The file is damaged, protected or too large, or its pages have no text.
    """
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    pdf: Any
    try:
        with closing(pypdfium2.PdfDocument(path)) as pdf:
            if len(pdf) > _MAX_PAGES:
                raise DocumentError(f"has more than {_MAX_PAGES:,} pages; split it")
            document = _read_pages(pdf)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError("is protected by a password") from error
        raise DocumentError("is damaged or not a PDF") from error
    if not document.sections:
        raise DocumentError("has no text; if it is scanned, let a program recognise its text")
    return document


def read_docx(path: Path) -> Document:
    """Read a Word file: its paragraphs, lists and tables, in sections below its headings.

    Raises:
        DocumentError: The file is damaged or too large.
    """
    import docx  # noqa: PLC0415

    try:
        _check_unpacked_size(path)
        return _read_word(docx.Document(str(path)))
    except (DocumentError, OSError):
        raise
    except Exception as error:  # damaged files cause errors of nearly any type
        raise DocumentError("is damaged or not a Word document") from error


def read_vectors(path: Path) -> Vectors:
    """Return the vectors of an index that `write_index` wrote.

    Raises:
        OSError: The index cannot be read.
    """
    import faiss  # noqa: PLC0415

    try:
        index: Any = faiss.read_index(str(path))
        vectors: Vectors = index.reconstruct_n(0, index.ntotal)
    except (RuntimeError, AssertionError, MemoryError) as error:
        raise OSError(" ".join(str(error).split())) from error
    return vectors


def write_index(vectors: Vectors, path: Path) -> None:
    """Write a new file with an exact index by inner product.

    Raises:
        OSError: The file cannot be written.
    """
    import faiss  # noqa: PLC0415

    index: Any = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    # FAISS's own writer does not report the cause of a failure.
    path.write_bytes(faiss.serialize_index(index).tobytes())


def _read_pages(pdf: Any) -> Document:
    outline = Outline(pdf.get_metadata_value("Title"))
    bookmarks = defaultdict[int, list[str]](list)
    for number, title in _bookmarks(pdf):
        bookmarks[number].append(title)
    last_bookmark, characters = "", 0
    for number in range(len(pdf)):
        text = _text_of(pdf, number)
        characters += len(text)
        if characters > _MAX_CHARACTERS:
            raise DocumentError(f"has more than {_MAX_CHARACTERS:,} characters; split it")
        page = f"page {number + 1}"
        titles = bookmarks.get(number, [last_bookmark])
        bookmark, last_bookmark = titles[0], titles[-1]
        outline.start(f"{bookmark} ({page})" if bookmark else page)
        outline.add(text)
    return outline.document()


def _bookmarks(pdf: Any) -> Iterator[tuple[int, str]]:
    for bookmark in pdf.get_toc(max_depth=_DEEPEST_BOOKMARK):
        target = bookmark.get_dest()
        number = target.get_index() if target else None
        if number is not None and (title := bookmark.get_title().strip()):
            yield number, title


def _text_of(pdf: Any, number: int) -> str:
    with closing(pdf[number]) as page, closing(page.get_textpage()) as text:
        return _HYPHEN.sub("", text.get_text_bounded())


def _check_unpacked_size(path: Path) -> None:
    """Raise an error for a document that would fill the memory. The stated sizes are limits."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > _LARGEST_UNPACKED:
        raise DocumentError(f"unpacks to more than {_LARGEST_UNPACKED // 1_000_000} MB; split it")


def _read_word(word: WordDocument) -> Document:
    from docx.oxml.table import CT_Tbl  # noqa: PLC0415
    from docx.table import Table  # noqa: PLC0415

    outline = Outline(word.core_properties.title)
    # A table of styles, because Paragraph.style searches all of them for each paragraph.
    styles = {style.style_id: style.name or "" for style in word.styles}
    body: Any = cast("Any", word).element.body  # its type is not declared
    for element in body.inner_content_elements:
        if isinstance(element, CT_Tbl):
            outline.add(_table_text(Table(element, word)))
        else:
            _add_paragraph(outline, element.text, styles.get(element.style, ""))
    return outline.document()


def _add_paragraph(outline: Outline, text: str, style: str) -> None:
    heading = _HEADING.fullmatch(style)
    if not text.strip():
        return
    if heading or style == "Title":
        level = int(heading[1]) if heading else 1
        outline.start(text, level, f"{'#' * min(level, 6)} {one_line(text)}")
    else:
        outline.add(f"- {text}" if style.startswith("List") else text)


def _table_text(table: Table) -> str:
    rows = ([one_line(cell.text) for cell in row.cells] for row in table.rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
