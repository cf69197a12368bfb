"""Documents for the tests, and a reader of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
import support.word

from standards_mcp_documents import DocumentReader


@pytest.fixture(scope="session")
def reader() -> Iterator[DocumentReader]:
    """A reader for all tests; its process survives every document."""
    with DocumentReader() as reader:
        yield reader


@pytest.fixture
def sections(reader: DocumentReader) -> Callable[..., list[tuple[str, str, str]]]:
    """Return a function that reads a document; it returns titles, headings and Markdown."""

    def read(suffix: str, content: str | bytes) -> list[tuple[str, str, str]]:
        data = content if isinstance(content, bytes) else content.encode()
        document = reader.parse(data, suffix)
        return [
            (
                document.title,
                section.heading,
                "\n\n".join(block.text for block in section.markdown_blocks()),
            )
            for section in document.sections
        ]

    return read


@pytest.fixture
def pdf() -> Callable[..., bytes]:
    return _pdf


@pytest.fixture
def word_document() -> Callable[..., bytes]:
    return support.word.word_document


@pytest.fixture
def zipped() -> Callable[..., bytes]:
    return support.word.zipped


def _pdf(
    *pages: str, title: str = "", bookmarks: Iterable[tuple[int, str]] = (), trailer: str = ""
) -> bytes:
    """Return a PDF with a line of text on each page."""
    marks = list(bookmarks)
    first_page, first_mark = 6, 6 + 2 * len(pages)
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(pages)))
    last_mark = first_mark + len(marks) - 1
    outlines = f"<< /Type /Outlines /First {first_mark} 0 R /Last {last_mark} 0 R >>"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        outlines if marks else "<< /Type /Outlines >>",
        f"<< /Title ({title}) >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        content = f"/Contents {first_page + 2 * number + 1} 0 R"
        box = "/Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page {box} {content} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    for number, (page, name) in enumerate(marks):
        following = f"/Next {first_mark + number + 1} 0 R" if number + 1 < len(marks) else ""
        objects.append(
            f"<< /Title ({name}) /Parent 4 0 R {following} "
            f"/Dest [{first_page + 2 * page} 0 R /Fit] >>"
        )
    data = b"%PDF-1.4\n"
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    end = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R {trailer} >>"
    return data + f"{head}{table}trailer\n{end}\nstartxref\n{len(data)}\n%%EOF\n".encode()
