"""PDF and Word documents are read in a process of their own, which damage may end."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docx.oxml import parse_xml

from standards_mcp import InvalidInputError
from standards_mcp_career import document_worker as worker
from standards_mcp_career.answers import IngestAnswer
from standards_mcp_career.resumes import extract

Make = Callable[..., bytes]
Ingest = Callable[..., IngestAnswer]
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
COMPATIBLE = "http://schemas.openxmlformats.org/markup-compatibility/2006"
BOX = f"""
<w:p xmlns:w="{WORD}" xmlns:mc="{COMPATIBLE}"><w:r><w:t>Beside</w:t></w:r><w:r>
<mc:AlternateContent>
<mc:Choice Requires="wps"><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent>
</mc:Choice>
<mc:Fallback><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Fallback>
</mc:AlternateContent></w:r></w:p>
"""
CONTROL = f"""
<w:sdt xmlns:w="{WORD}"><w:sdtContent><w:p><w:sdt><w:sdtContent><w:r><w:t>In a control</w:t></w:r>
</w:sdtContent></w:sdt></w:p></w:sdtContent></w:sdt>
"""


def rewritten(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a Word document with another main part."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, change(part) if name == "word/document.xml" else part)
    return file.getvalue()


@pytest.mark.measured
def test_a_word_document_is_read_in_its_order(word_document: Make):
    lines = ["Platform engineer", "Ran Kafka clusters", "Go Rust", "five years", "Terraform"]
    assert extract(word_document(), ".docx") == "\n".join(["# Resume", "", *lines, "The end"])


def test_a_table_within_a_table_has_lines_of_its_own(word_document: Make):
    def change(word: Any) -> None:
        cell = word.add_table(1, 1).cell(0, 0)
        cell.paragraphs[0].text = "outer"
        cell.add_table(1, 2).cell(0, 0).paragraphs[0].text = "inner"

    lines = extract(word_document(change), ".docx").splitlines()
    assert lines[-2:] == ["outer", "inner"]


def test_boxes_and_controls_of_a_word_document_are_read_once(word_document: Make):
    def change(word: Any) -> None:
        for xml in (BOX, CONTROL):
            word.element.body.insert(0, parse_xml(xml))

    lines = worker.answer(".docx", word_document(change))["text"].split("\n")
    assert lines[:4] == ["In a control", "Beside", "In a box", "Platform engineer"]


@pytest.mark.parametrize("within", ["<w:p><w:r>{}</w:r></w:p>", "{}"])
def test_the_text_of_a_box_within_boxes_is_read_once(word_document: Make, within: str):
    inner = "<w:txbxContent><w:p><w:r><w:t>Within</w:t></w:r></w:p></w:txbxContent>"
    for _ in range(8):
        inner = f"<w:txbxContent>{within.format(inner)}</w:txbxContent>"
    boxes = f'<w:p xmlns:w="{WORD}"><w:r><w:t>Around</w:t>{inner}</w:r></w:p>'

    def change(word: Any) -> None:
        word.element.body.insert(0, parse_xml(boxes))

    lines = worker.answer(".docx", word_document(change))["text"].split("\n")
    assert lines[:3] == ["Around", "Within", "Platform engineer"]


def test_a_pdf_is_read_page_by_page(pdf_of: Make):
    data = pdf_of("Platform engineer\nKafka", "", "Terraform")
    assert extract(data, ".pdf") == "# Resume\n\nPlatform engineer\r\nKafka\n\nTerraform"


def test_the_text_of_documents_is_normalised(ingest: Ingest, root: Path, pdf_of: Make):
    (root / "a.pdf").write_bytes(pdf_of("Kafka", "", "", "", "Go"))
    (root / "b.md").write_text("# Resume\n\nKafka\n\n\nGo")
    first = ingest(str(root / "a.pdf"))
    assert ingest(str(root / "b.md"))["resume_id"] == first["resume_id"]


@pytest.mark.parametrize("extension", [".pdf", ".docx"])
@pytest.mark.parametrize("data", [b"x", b"%PDF-1.7 and no more", b"PK\3\4 and no more"])
def test_other_content_is_refused(extension: str, data: bytes):
    with pytest.raises(InvalidInputError, match=r"Extraction failed: the file is damaged, or not"):
        extract(data, extension)


def test_a_document_without_text_is_told(pdf_of: Make):
    with pytest.raises(InvalidInputError, match="it has no text; if it is a scan"):
        extract(pdf_of("", ""), ".pdf")


def test_a_document_with_a_password_is_told(pdf_of: Make):
    answer = worker.answer(".pdf", pdf_of("Kafka", is_protected=True))
    assert answer == {"error": "the file is protected by a password"}


def test_a_bomb_is_not_unpacked(zipped: Make):
    bomb = zipped({"word/document.xml": 30_000_000, "other": 20_000_001})
    assert len(bomb) < 100_000
    with pytest.raises(InvalidInputError, match="it unpacks to more than 50 MB"):
        extract(bomb, ".docx")


def test_entities_of_a_word_document_are_not_expanded(word_document: Make):
    entity = b'<!DOCTYPE x [<!ENTITY a "' + b"x" * 1000 + b'">'
    entities = b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 100) for n in range(6))
    data = rewritten(
        word_document(),
        lambda xml: xml.replace(b"<w:document", entity + entities + b"]><w:document", 1).replace(
            b"The end", b"&g;"
        ),
    )
    answer = worker.answer(".docx", data)
    assert "x" * 1000 not in answer.get("text", "")


def test_a_document_may_not_take_all_memory(monkeypatch: pytest.MonkeyPatch):
    def fill(_: bytes) -> Any:
        raise MemoryError

    monkeypatch.setattr(worker, "_pages", fill)
    assert worker.answer(".pdf", b"") == {"error": "reading it takes more than 1 GB of memory"}
    monkeypatch.setattr(worker, "_pages", lambda _: iter(["x" * 10_000_001]))
    assert "more than 10,000,000 characters" in worker.answer(".pdf", b"")["error"]


def test_the_process_has_a_limit_of_memory():
    code = "import sys; sys.argv[1] = '.pdf'\n"
    code += "from standards_mcp_career import document_worker as worker\n"
    code += "worker._pages = lambda data: [str(len(bytes(2 * 10**9)))]\nworker.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, ""], input=b"", capture_output=True, check=True
    )
    assert b"more than 1 GB" in done.stdout


@pytest.mark.parametrize(("kind", "message"), [("exit", "reader crashed"), ("wait", "to read")])
def test_a_process_that_ends_or_hangs_costs_its_file_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, message: str
):
    code = {"exit": "import os; os._exit(1)", "wait": "import time; time.sleep(90)"}[kind]
    (tmp_path / "ending.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(worker, "__name__", "ending")
    monkeypatch.setattr(worker, "SECONDS", 90 if kind == "exit" else 0.5)
    with pytest.raises(InvalidInputError, match=f"Extraction failed: .*{message}"):
        extract(b"x", ".pdf")


def test_what_lies_in_the_working_directory_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word_document: Make
):
    (tmp_path / "docx.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert "The end" in extract(word_document(), ".docx")


def test_two_hundred_damaged_documents_end_nothing(word_document: Make, pdf_of: Make):
    chance = random.Random(7)  # noqa: S311  - not for secrets
    outcomes: list[str] = []
    for extension, sound in ((".docx", word_document()), (".pdf", pdf_of("Kafka", "Go"))):
        for _ in range(100):
            data = bytearray(sound)
            for _ in range(chance.choice([1, 3, 30])):
                data[chance.randrange(len(data))] = chance.randrange(256)
            cut = chance.choice([len(data), chance.randrange(len(data))])
            answer = worker.answer(extension, bytes(data[:cut]))
            assert len(answer) == 1
            outcomes += answer
    assert set(outcomes) == {"error", "text"}


@pytest.mark.parametrize("extension", [".pdf", ".docx"])
def test_damaged_documents_are_refused_through_their_process(
    extension: str, word_document: Make, pdf_of: Make
):
    sound = pdf_of("Kafka") if extension == ".pdf" else word_document()
    for cut in (10, len(sound) // 2):
        with pytest.raises(InvalidInputError, match="Extraction failed: "):
            extract(sound[:cut], extension)
