"""Read PDF files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pypdfium2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from .document import Document, DocumentError, Outline

_MAX_PAGES: Final = 5_000
_DEEPEST_BOOKMARK: Final = 15
_HYPHEN: Final = re.compile(r"[\x02\ufffe](\r\n)?")
"""PDFium's characters for the hyphen of a word that continues in the next line."""


def read_pdf(data: bytes) -> Document:
    """Read a PDF file: one section for each page, with bookmark and page number as heading.

    Raises:
        DocumentError: The file is protected or has too many pages.
        pypdfium2.PdfiumError: The file is damaged.
    """
    pdf: Any
    try:
        with closing(pypdfium2.PdfDocument(data)) as pdf:
            if len(pdf) > _MAX_PAGES:
                raise DocumentError(f"it has more than {_MAX_PAGES:,} pages; split it")
            return _read_pages(pdf)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError("it is protected by a password") from error
        raise


def _read_pages(pdf: Any) -> Document:
    outline = Outline(pdf.get_metadata_value("Title"))
    bookmarks = defaultdict[int, list[str]](list)
    for number, title in _bookmarks(pdf):
        bookmarks[number].append(title)
    last_bookmark = ""
    for number in range(len(pdf)):
        page = f"page {number + 1}"
        titles = bookmarks.get(number, [last_bookmark])
        bookmark, last_bookmark = titles[0], titles[-1]
        outline.start(f"{bookmark} ({page})" if bookmark else page)
        outline.add(_text_of(pdf, number))
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
