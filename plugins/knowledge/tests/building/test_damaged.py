"""Files that cannot be read cost themselves alone."""

import io
import random
import zipfile

import docx
import pytest

from standards_mcp_knowledge.building import worker
from standards_mcp_knowledge.workers.pool import OverdueError, UnavailableError


@pytest.fixture
def reason(write, build, documents):
    """Return why a file is skipped; the other one is read."""

    def reason(name, content):
        write({"sound.md": "Sound.", name: content})
        skipped = build().skipped
        assert [each["path"] for each in documents()] == ["sound.md"]
        assert [each.path for each in skipped] == [name]
        return skipped[0].reason

    return reason


def zipped(parts: dict[str, int]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in parts.items():
            archive.writestr(name, bytes(size))
    return file.getvalue()


def word_document() -> bytes:
    word, file = docx.Document(), io.BytesIO()
    word.add_paragraph("Sound words. " * 30)
    word.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", "", "has no text"),
        ("a.html", "<p> </p>", "has no text"),
        ("a.txt", b"\0\1\2", "is not text, or is UTF-16 without a mark; save it as UTF-8"),
        ("a.txt", b"x " * 5_000_001, "is larger than 10 MB; split it"),
        ("a.html", "<div>" * 5_000 + "x", "its elements are nested too deep"),
        ("a.html", "<p>x<![<p>", "is damaged or not HTML"),
        ("a.pdf", b"", "is damaged or not a PDF"),
        ("a.pdf", b"%PDF-1.7 and no more", "is damaged or not a PDF"),
        ("a.docx", b"", "is damaged or not a Word document"),
        ("a.docx", zipped({"a.txt": 10}), "is damaged or not a Word document"),
        ("a.docx", zipped({"a.txt": 200_000_001}), "unpacks to more than 200 MB; split it"),
        (
            "a.docx",
            zipped({f"{number}": 0 for number in range(10_001)}),
            "unpacks to more than 200 MB; split it",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_the_reason_names_the_error(name, content, expected, reason):
    assert reason(name, content) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnavailableError(1), "cannot be read: the worker process ended; the log has the cause"),
        (OverdueError(300), "cannot be read: no answer within 300 s"),
    ],
    ids=["ends", "takes too long"],
)
def test_a_file_that_costs_its_worker_is_skipped(error, expected, reason, work, pdf):
    call = work.call

    def fail(function, *arguments):
        if function is worker.read_pdf:
            raise error
        return call(function, *arguments)

    work.call = fail
    assert reason("a.pdf", pdf("Hello")) == expected


def test_a_scanned_pdf_has_no_text(reason, pdf):
    assert reason("a.pdf", pdf("")).startswith("has no text; if it is scanned")


def test_a_protected_pdf_needs_a_password(reason, pdf):
    key = "00" * 32
    standard = f"/Filter /Standard /V 1 /R 2 /P -1 /O <{key}> /U <{key}>"
    trailer = f"/Encrypt << {standard} >> /ID [<00> <00>]"

    assert reason("a.pdf", pdf("Hello", trailer=trailer)) == "is protected by a password"


def test_a_pdf_of_too_many_pages_is_not_read(reason, pdf):
    assert reason("a.pdf", pdf(*["x"] * 5_001)) == "has more than 5,000 pages; split it"


@pytest.mark.parametrize("kind", ["pdf", "docx"])
def test_files_that_were_cut_or_changed_anywhere_end_no_build(kind, write, build, pdf):
    sound = word_document() if kind == "docx" else pdf("Hello", "World", title="x")
    chance = random.Random(7)  # noqa: S311
    damaged = {}
    for number in range(40):
        data = bytearray(sound[: chance.randrange(len(sound))] if number % 2 else sound)
        for _ in range(number % 8):
            data[chance.randrange(len(data))] = chance.randrange(256)
        damaged[f"{number}.{kind}"] = bytes(data)
    write({"sound.md": "Sound.", **damaged})

    report = build()

    assert report.files + len(report.skipped) == len(damaged) + 1
