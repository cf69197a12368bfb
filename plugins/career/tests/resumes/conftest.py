"""Documents for the tests of resumes."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import support.word

from standards_mcp_career.answers import IngestAnswer
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.resumes import Limits, ingest_resume

Make = Callable[..., bytes]
Ingest = Callable[..., IngestAnswer]


def _pdf_of(*pages: str, is_protected: bool = False) -> bytes:
    """Return a PDF; each page has the lines of a text."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids: list[str] = []
    for page in pages:
        lines = "".join(f"({line}) Tj 0 -20 Td " for line in page.split("\n") if line)
        stream = f"BT /F1 12 Tf 72 700 Td {lines}ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        font = "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects)} 0 R "
            f"/Resources << /Font {font} >> >>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    file = io.BytesIO(b"%PDF-1.4\n")
    file.seek(0, io.SEEK_END)
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(file.tell())
        file.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = file.tell()
    file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    file.writelines(b"%010d 00000 n \n" % place for place in places)
    protection = b"/Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s>" % (b"0" * 64, b"1" * 64)
    more = b" /ID [<00><00>] /Encrypt << %s >>" % protection if is_protected else b""
    trailer = b"trailer << /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF"
    file.write(trailer % (len(objects) + 1, more, start))
    return file.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "resumes"
    folder.mkdir()
    return folder


@pytest.fixture
def ingest(audit: AuditLog, root: Path) -> Ingest:
    return partial(ingest_resume, audit, Limits([root], 100_000))


@pytest.fixture
def pdf_of() -> Make:
    return _pdf_of


@pytest.fixture
def word_document() -> Make:
    return support.word.word_document


@pytest.fixture
def zipped() -> Make:
    return support.word.zipped
