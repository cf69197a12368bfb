"""Read one PDF or Word document in a separate process: data on stdin, JSON on stdout.

A bad file may exhaust memory, run forever or crash its process, and this process only.
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

MARKED: Final = "marked"
SECONDS: Final = 30
"""Time limit for one document."""
_MEMORY: Final = 10**9
_MOST_UNPACKED: Final = 50_000_000
_MOST_CHARACTERS: Final = 10_000_000
_HYPHEN: Final = re.compile(r"[\x02\ufffe](\r\n)?")
"""PDFium's mark for a hyphen at the end of a line."""


_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH: Final = f"{_WORD}p"
_BOX: Final = f"{_WORD}txbxContent"
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


class DocumentError(Exception):
    """An unreadable document, with the reason."""


def main() -> None:
    """Read the document whose kind the first argument names; a second may be `MARKED`."""
    _limit()
    data = sys.stdin.buffer.read()
    result = answer(sys.argv[1], data, is_marked=MARKED in sys.argv[2:])
    sys.stdout.buffer.write(json.dumps(result).encode())


def answer(kind: str, data: bytes, *, is_marked: bool = False) -> dict[str, str]:
    """Return the document's ``text``, or an ``error``.

    Args:
        kind: ``.pdf`` or ``.docx``.
        is_marked: Mark the headings and list items of a Word document as Markdown does.
    """
    try:
        text = "\n".join(_pages(data) if kind == ".pdf" else _paragraphs(data, is_marked=is_marked))
    except DocumentError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "reading it takes more than 1 GB of memory"}
    except Exception:  # noqa: BLE001  - damage makes the libraries raise nearly anything
        return {"error": f"the file is damaged, or not a {kind} file"}
    if len(text) > _MOST_CHARACTERS:
        return {"error": f"it has more than {_MOST_CHARACTERS:,} characters"}
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


def _paragraphs(data: bytes, *, is_marked: bool) -> Iterator[str]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        # No entry is unpacked beyond the size that it states.
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > _MOST_UNPACKED:
        raise DocumentError(f"it unpacks to more than {_MOST_UNPACKED // 1_000_000} MB")
    import docx  # noqa: PLC0415

    word: Any = docx.Document(BytesIO(data))
    # Older programs show this copy of a text box; newer ones show the box itself.
    for fallback in list(word.element.body.iter(_FALLBACK)):
        fallback.getparent().remove(fallback)
    styles = {style.style_id: style for style in word.styles} if is_marked else None
    return (text for text in _texts(word.element.body, styles) if text.strip())


def _mark(paragraph: Any, styles: Mapping[str, Any]) -> str:
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
    """Return the texts of paragraphs and table cells, including controls and boxes."""
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
    """Return the text of a cell in one line, then the text of its nested tables.

    Resumes are often laid out by tables, so lists in cells stay lists where they are marked.
    """
    tables = [child for child in cell if child.tag == f"{_WORD}tbl"]
    texts = [text for child in cell if child not in tables for text in _texts([child], styles)]
    yield from texts if styles else [" ".join(" ".join(texts).split())]
    yield from _texts(tables, styles)


def _paragraph(paragraph: Any, styles: Mapping[str, Any] | None) -> Iterator[str]:
    """Return the text of a paragraph, then the text of its boxes."""
    runs = paragraph.iter(f"{_WORD}r")
    own = (run for run in runs if next(run.iterancestors(_PARAGRAPH)) is paragraph)
    text = "".join(run.text for run in own)
    yield _mark(paragraph, styles) + text if styles and text.strip() else text
    for box in paragraph.iter(_BOX):
        # A box within a box comes with that one.
        if next(box.iterancestors(_PARAGRAPH, _BOX)) is paragraph:
            yield from _texts(box, styles)


def _limit() -> None:
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  - there is none on Windows

        for limit, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CPU, SECONDS)):
            _, hard = resource.getrlimit(limit)
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(limit, (least, hard))


if __name__ == "__main__":
    main()
