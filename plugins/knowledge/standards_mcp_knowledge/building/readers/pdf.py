"""Reads PDF, in a worker process: the library has no threads, and a bad file may end it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pypdfium2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from standards_mcp_knowledge.building.document import Document, DocumentError, Outline

_MOST_PAGES: Final = 5_000
_MOST_CHARACTERS: Final = 20_000_000
_DEEPEST: Final = 15
_HYPHEN: Final = re.compile(r"[\x02\ufffe](\r\n)?")
"""How PDFium writes the hyphen of a word that goes on in the next line."""


def read_pdf(path: Path) -> Document:
    """Return a section for each page, headed by its bookmark and number.

    Raises:
        DocumentError: It is damaged, protected or too large, or its pages have no text.
    """
    pdf: Any
    try:
        with closing(pypdfium2.PdfDocument(path)) as pdf:
            if len(pdf) > _MOST_PAGES:
                raise DocumentError(f"has more than {_MOST_PAGES:,} pages; split it")
            document = _read(pdf)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError("is protected by a password") from error
        raise DocumentError("is damaged, or is no PDF") from error
    if not document.sections:
        raise DocumentError("has no text; if it is scanned, let a program recognise its text")
    return document


def _read(pdf: Any) -> Document:
    outline = Outline(pdf.get_metadata_value("Title"))
    bookmarks = defaultdict[int, list[str]](list)
    for number, title in _bookmarks(pdf):
        bookmarks[number].append(title)
    above, characters = "", 0
    for number in range(len(pdf)):
        text = _text_of(pdf, number)
        characters += len(text)
        if characters > _MOST_CHARACTERS:
            raise DocumentError(f"has more than {_MOST_CHARACTERS:,} characters; split it")
        page = f"page {number + 1}"
        titles = bookmarks.get(number, [above])
        bookmark, above = titles[0], titles[-1]
        outline.start(f"{bookmark} ({page})" if bookmark else page)
        outline.add(text)
    return outline.document()


def _bookmarks(pdf: Any) -> Iterator[tuple[int, str]]:
    for bookmark in pdf.get_toc(max_depth=_DEEPEST):
        target = bookmark.get_dest()
        number = target.get_index() if target else None
        if number is not None and (title := bookmark.get_title().strip()):
            yield number, title


def _text_of(pdf: Any, number: int) -> str:
    with closing(pdf[number]) as page, closing(page.get_textpage()) as text:
        return _HYPHEN.sub("", text.get_text_bounded())
