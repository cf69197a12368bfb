"""PDF and Word resumes are read by `standards_mcp_documents`, whose tests have the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from standards_mcp import InvalidInputError
from standards_mcp_career.answers import IngestAnswer
from standards_mcp_career.resumes import extract

Make = Callable[..., bytes]
Ingest = Callable[..., IngestAnswer]


@pytest.mark.measured
def test_a_word_document_is_read_in_its_order(word_document: Make):
    lines = ["Platform engineer", "Ran Kafka clusters", "Go Rust", "five years", "Terraform"]
    assert extract(word_document(), ".docx") == "\n".join(["# Resume", "", *lines, "The end"])


def test_a_pdf_is_read_page_by_page(pdf_of: Make):
    data = pdf_of("Platform engineer\nKafka", "", "Terraform")
    assert extract(data, ".pdf") == "# Resume\n\nPlatform engineer\nKafka\nTerraform"


def test_the_text_of_documents_is_normalised(ingest: Ingest, root: Path, pdf_of: Make):
    (root / "a.pdf").write_bytes(pdf_of("Kafka", "Go"))
    (root / "b.md").write_bytes(b"# Resume \n\nKafka\r\nGo")
    first = ingest(str(root / "a.pdf"))
    assert ingest(str(root / "b.md"))["resume_id"] == first["resume_id"]


@pytest.mark.parametrize(
    ("extension", "data", "reason"),
    [
        (".pdf", b"%PDF-1.7 and no more", "it is damaged, or not a PDF document"),
        (".docx", b"PK\3\4 and no more", "it is damaged, or not a Word document"),
    ],
)
def test_other_content_is_refused(extension: str, data: bytes, reason: str):
    with pytest.raises(InvalidInputError, match=f"Extraction failed: {reason}"):
        extract(data, extension)


def test_a_document_without_text_is_reported(pdf_of: Make):
    with pytest.raises(InvalidInputError, match="it has no text; if it is a scan"):
        extract(pdf_of("", ""), ".pdf")


def test_a_document_with_a_password_is_reported(pdf_of: Make):
    with pytest.raises(InvalidInputError, match="it is protected by a password"):
        extract(pdf_of("Kafka", is_protected=True), ".pdf")


def test_a_bomb_is_not_unpacked(zipped: Make):
    bomb = zipped({"word/document.xml": 30_000_000, "other": 20_000_001})
    with pytest.raises(InvalidInputError, match="it unpacks to more than 50 MB"):
        extract(bomb, ".docx")
