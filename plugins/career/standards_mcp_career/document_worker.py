"""Read one PDF or Word document in a separate process: data on stdin, JSON on stdout.

A bad file may exhaust memory, run forever or crash, but only in this process.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from io import BytesIO
from typing import Any, Final

MARK_LISTS: Final = "marked"
SECONDS: Final = 30
"""Time limit for one document."""
_MAX_MEMORY: Final = 10**9
_MAX_UNPACKED: Final = 50_000_000
_MAX_CHARACTERS: Final = 10_000_000
_HYPHEN: Final = re.compile(r"[\x02\ufffe](\r\n)?")
"""PDFium's mark for a hyphen at the end of a line."""


_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH: Final = f"{_WORD}p"
_BOX: Final = f"{_WORD}txbxContent"
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


class DocumentError(Exception):
    """An unreadable document, with the reason."""


def main() -> None:
    """Read a document. The arguments are its kind and, optionally, `MARK_LISTS`."""
    _set_limits()
    data = sys.stdin.buffer.read()
    result = answer(sys.argv[1], data, mark_lists=MARK_LISTS in sys.argv[2:])
    sys.stdout.buffer.write(json.dumps(result).encode())


def answer(kind: str, data: bytes, *, mark_lists: bool = False) -> dict[str, str]:
    """Return the document's ``text``, or an ``error``.

    Args:
        kind: The extension, ``.pdf`` or ``.docx``.
        mark_lists: Mark the headings and list items of a Word document as Markdown does.
    """
    try:
        text = "\n".join(
            _pages(data) if kind == ".pdf" else _paragraphs(data, mark_lists=mark_lists)
        )
    except DocumentError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "reading it takes more than 1 GB of memory"}
    except Exception:  # noqa: BLE001  - damaged files make the libraries raise nearly anything
        return {"error": f"the file is damaged, or not a {kind} file"}
    if len(text) > _MAX_CHARACTERS:
        return {"error": f"it has more than {_MAX_CHARACTERS:,} characters"}
    # Broken fonts give lone surrogates, which UTF-8 cannot encode.
    return {"text": text.encode("utf-8", "replace").decode()}


def _pages(data: bytes) -> Iterator[str]:
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    pdf: Any
    try:
        with closing(pypdfium2.PdfDocument(data)) as pdf:
            for number in range(len(pdf)):
                with closing(pdf[number]) as page, closing(page.get_textpage()) as text:
                    yield _HYPHEN.sub("", text.get_text_bounded())
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError("the file is protected by a password") from error
        raise


def _paragraphs(data: bytes, *, mark_lists: bool) -> Iterator[str]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        # `zipfile` unpacks no entry beyond its stated size.
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > _MAX_UNPACKED:
        raise DocumentError(f"it unpacks to more than {_MAX_UNPACKED // 1_000_000} MB")
    import docx  # noqa: PLC0415

    word: Any = docx.Document(BytesIO(data))
    # Older programs show this copy of a text box; newer ones show the box itself.
    for fallback in list(word.element.body.iter(_FALLBACK)):
        fallback.getparent().remove(fallback)
    styles = {style.style_id: style for style in word.styles} if mark_lists else None
    return (text for text in _texts(word.element.body, styles) if text.strip())


def _markdown_prefix(paragraph: Any, styles: Mapping[str, Any]) -> str:
    """Return the Markdown prefix of a paragraph, by its style."""
    if paragraph.pPr is not None and paragraph.pPr.numPr is not None:
        return "- "
    style = styles.get(paragraph.style or "")
    while style is not None:
        properties = style.element.pPr
        if properties is not None and properties.numPr is not None:
            return "- "
        if style.name.startswith("Heading"):
            return "## "
        style = style.base_style
    return ""


def _texts(element: Any, styles: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the texts of paragraphs and table cells, also in content controls and text boxes."""
    from docx.oxml.table import CT_Tc  # noqa: PLC0415
    from docx.oxml.text.paragraph import CT_P  # noqa: PLC0415

    for child in element:
        if isinstance(child, CT_P):
            yield from _paragraph(child, styles)
        elif isinstance(child, CT_Tc):
            yield from _cell(child, styles)
        else:
            yield from _texts(child, styles)


def _cell(cell: Any, styles: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the text of a cell in one line, then the texts of its nested tables.

    With *styles*, each paragraph stays a line: resumes are often laid out by tables, and have lists
    in cells.
    """
    tables = [child for child in cell if child.tag == f"{_WORD}tbl"]
    texts = [text for child in cell if child not in tables for text in _texts([child], styles)]
    yield from texts if styles else [" ".join(" ".join(texts).split())]
    yield from _texts(tables, styles)


def _paragraph(paragraph: Any, styles: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the text of a paragraph, then the texts of its text boxes."""
    runs = paragraph.iter(f"{_WORD}r")
    own = (run for run in runs if next(run.iterancestors(_PARAGRAPH)) is paragraph)
    text = "".join(run.text for run in own)
    yield _markdown_prefix(paragraph, styles) + text if styles and text.strip() else text
    for box in paragraph.iter(_BOX):
        # The outer box yields the text of a nested box.
        if next(box.iterancestors(_PARAGRAPH, _BOX)) is paragraph:
            yield from _texts(box, styles)


def _set_limits() -> None:
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  - there is none on Windows

        for limit, most in ((resource.RLIMIT_AS, _MAX_MEMORY), (resource.RLIMIT_CPU, SECONDS)):
            _, hard = resource.getrlimit(limit)
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(limit, (soft, hard))


if __name__ == "__main__":
    main()
