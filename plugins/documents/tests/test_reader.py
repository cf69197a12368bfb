"""Documents are read in a process that a bad one may end, and the next one is read all the same."""

from __future__ import annotations

import io
import os
import random
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from standards_mcp_documents import DocumentError, DocumentReader, Limits, worker
from standards_mcp_documents import reader as module

Make = Callable[..., bytes]


@pytest.fixture
def reason(reader: DocumentReader) -> Callable[..., str]:
    """Return a function that returns the error of a document."""

    def reason(suffix: str, data: bytes, reader: DocumentReader = reader) -> str:
        with pytest.raises(DocumentError) as raised:
            reader.parse(data, suffix)
        assert reader.parse(b"Sound.", ".md").text == "Sound."
        return str(raised.value)

    return reason


def rewritten(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a Word document with another main part."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, change(part) if name == "word/document.xml" else part)
    return file.getvalue()


@pytest.mark.parametrize(
    ("suffix", "data", "expected"),
    [
        (".md", b"", "it has no text"),
        (".html", b"<p> </p>", "it has no text"),
        (".txt", b"\0\1\2", "it is not text, or is UTF-16 without a mark; save it as UTF-8"),
        (".txt", b"x " * 5_000_001, "it is larger than 10 MB; split it"),
        (".html", b"<div>" * 5_000 + b"x", "its elements are nested too deep"),
        (".html", b"<p>x<![<p>", "it is damaged, or not HTML"),
        (".pdf", b"", "it is damaged, or not a PDF document"),
        (".pdf", b"%PDF-1.7 and no more", "it is damaged, or not a PDF document"),
        (".docx", b"", "it is damaged, or not a Word document"),
        (".docx", b"PK\3\4 and no more", "it is damaged, or not a Word document"),
        (
            ".docx",
            bytes.fromhex("d0cf11e0a1b11ae1"),
            "it is protected by a password, or in the .doc format of old programs",
        ),
        (
            ".csv",
            b"x",
            "it has none of these suffixes: .md, .markdown, .html, .htm, .txt, .rst, .pdf, .docx",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_the_error_names_the_reason(
    reason: Callable[..., str], suffix: str, data: bytes, expected: str
):
    assert reason(suffix, data) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"a.txt": 10}, "it is damaged, or not a Word document"),
        ({"word/document.xml": 30_000_000, "other": 20_000_001}, "it unpacks to more than 50 MB"),
        (dict.fromkeys(map(str, range(10_001)), 0), "it unpacks to more than 50 MB"),
    ],
    ids=["of something else", "a bomb", "many parts"],
)
def test_an_archive_that_is_no_document_is_not_unpacked(
    reason: Callable[..., str], zipped: Make, parts: dict[str, int], expected: str
):
    data = zipped(parts)
    assert len(data) < 2_000_000
    assert reason(".docx", data).startswith(expected)


def test_scanned_and_protected_pdfs_are_reported(reason: Callable[..., str], pdf: Make):
    expected = "it has no text; if it is a scan, run text recognition (OCR) first"
    assert reason(".pdf", pdf("", "")) == expected
    key = "00" * 32
    standard = f"/Filter /Standard /V 1 /R 2 /P -1 /O <{key}> /U <{key}>"
    protected = pdf("Hello", trailer=f"/Encrypt << {standard} >> /ID [<00> <00>]")
    assert reason(".pdf", protected) == "it is protected by a password"


def test_a_pdf_of_too_many_pages_is_not_read(reason: Callable[..., str], pdf: Make):
    assert reason(".pdf", pdf(*["x"] * 5_001)) == "it has more than 5,000 pages; split it"


def test_entities_of_a_word_document_are_not_expanded(reader: DocumentReader, word_document: Make):
    entity = b'<!DOCTYPE x [<!ENTITY a "' + b"x" * 1000 + b'">'
    entities = b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 100) for n in range(6))
    data = rewritten(
        word_document(),
        lambda xml: xml.replace(b"<w:document", entity + entities + b"]><w:document", 1).replace(
            b"The end", b"&g;"
        ),
    )
    try:
        text = reader.parse(data, ".docx").text
    except DocumentError as error:
        text = str(error)
    assert "x" * 1000 not in text


def test_a_document_may_not_take_all_memory(reason: Callable[..., str], zipped: Make):
    data = zipped({"[Content_Types].xml": 400_000_000})
    with DocumentReader(Limits(memory=300_000_000, unpacked=10**9)) as small:
        expected = "reading it takes more than 0.3 GB of memory"
        assert reason(".docx", data, small) == expected


def test_the_text_of_a_document_has_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("standards_mcp_documents.document.MAX_CHARACTERS", 10)
    answer = worker.answer_to(b"one two three", ".txt", Limits())
    assert answer == {"error": "it has more than 10 characters; split it"}


def test_a_missing_parser_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    monkeypatch.delitem(sys.modules, "standards_mcp_documents.pdf", raising=False)
    answer = worker.answer_to(b"", ".pdf", Limits())
    assert answer == {"error": "reading it needs the Python package pypdfium2"}


ENDING = """
import os, sys, time
if "os._exit" in {end!r}:
    os._exit(1)
line = sys.stdin.buffer.readline()
sys.stdin.buffer.read(int(line.split()[1][:-1]))
print("library output", file=sys.stderr)
{end}
"""


@pytest.mark.parametrize(
    ("end", "limits", "expected"),
    [
        ("os._exit(1)", Limits(), "its reader crashed; it may be damaged"),
        ("os.abort()", Limits(), "its reader crashed; it may be damaged"),
        ("print('{')", Limits(), "its reader crashed; it may be damaged"),
        ("time.sleep(90)", Limits(seconds=0.5), "reading it takes more than 0.5 s"),
    ],
    ids=["ends before it reads", "crashes", "breaks off", "hangs"],
)
def test_a_document_that_ends_its_process_does_not_affect_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str, limits: Limits, expected: str
):
    (tmp_path / "ending.py").write_text(ENDING.format(end=end))
    with monkeypatch.context() as patch, DocumentReader(limits) as reader:
        patch.setenv("PYTHONPATH", str(tmp_path))
        patch.setattr(module, "_WORKER", "ending")
        with pytest.raises(DocumentError) as raised:
            reader.parse(b"x" * 5_000_000, ".md")
        assert str(raised.value) == expected
        patch.undo()
        object.__setattr__(limits, "seconds", 30)
        assert reader.parse(b"Sound.", ".md").text == "Sound."


def test_a_process_that_was_killed_while_idle_is_replaced():
    with DocumentReader() as reader:
        reader.parse(b"One.", ".md")
        assert reader._process
        reader._process.kill()
        reader._process.wait()
        assert reader.parse(b"Two.", ".md").text == "Two."
        process = reader._process
    assert process.poll() is not None


def test_without_a_new_process_no_document_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with DocumentReader() as reader, pytest.raises(DocumentError, match="cannot be started"):
        reader.parse(b"One.", ".md")


def test_files_are_read_unless_they_are_something_else(tmp_path: Path, reader: DocumentReader):
    file = tmp_path / "a.MD"
    file.write_text("# Guide")
    assert reader.read(file).title == "Guide"
    os.mkfifo(tmp_path / "pipe.md")
    for name, expected in (("pipe.md", "it is not a file"), ("b.md", "No such file or directory")):
        with pytest.raises(DocumentError, match=expected):
            reader.read(tmp_path / name)


def test_modules_in_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word_document: Make
):
    (tmp_path / "docx.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    with DocumentReader() as reader:
        assert "The end" in reader.parse(word_document(), ".docx").text


def test_200_damaged_documents_do_not_end_the_reader(
    reader: DocumentReader, word_document: Make, pdf: Make
):
    chance = random.Random(7)  # noqa: S311  - not for secrets
    outcomes: set[str] = set()
    for suffix, sound in ((".docx", word_document()), (".pdf", pdf("Kafka", "Go", title="x"))):
        for _ in range(100):
            data = bytearray(sound)
            for _ in range(chance.choice([1, 3, 30])):
                data[chance.randrange(len(data))] = chance.randrange(256)
            cut = chance.choice([len(data), chance.randrange(len(data))])
            try:
                reader.parse(bytes(data[:cut]), suffix)
                outcomes.add("text")
            except DocumentError as error:
                outcomes.add(str(error))
    assert outcomes > {"text", "it is damaged, or not a PDF document"}
