"""Files that cannot be read are skipped, and the others are read."""

from standards_mcp_documents import DocumentReader


def test_each_damaged_file_is_skipped_with_its_reason(write, build, documents):
    damaged = {
        "a.docx": b"PK and no more",
        "a.html": b"<p> </p>",
        "a.pdf": b"%PDF-1.7 and no more",
        "a.txt": b"\0\1\2",
        "b.md": "Sound.",
        "c.txt": b"x " * 5_000_001,
    }
    write(damaged)

    report = build()

    assert [each["path"] for each in documents()] == ["b.md"]
    assert {each.path: each.reason for each in report.skipped} == {
        "a.docx": "it is damaged, or not a Word document",
        "a.html": "it has no text",
        "a.pdf": "it is damaged, or not a PDF document",
        "a.txt": "it is not text, or is UTF-16 without a mark; save it as UTF-8",
        "c.txt": "it is larger than 10 MB; split it",
    }


def test_a_file_that_ends_the_process_of_its_reader_is_skipped(
    write, build, documents, monkeypatch
):
    ask = DocumentReader._ask

    def crash(reader, data, suffix):
        if suffix != ".rst":
            return ask(reader, data, suffix)
        process = reader._running_process()
        process.kill()
        with monkeypatch.context() as patch:  # it must not see the end and start another one
            patch.setattr(reader, "_running_process", lambda: process)
            return ask(reader, data, suffix)

    monkeypatch.setattr(DocumentReader, "_ask", crash)
    write({"a.md": "One.", "b.rst": "Two.", "c.md": "Three."})

    skipped = build().skipped

    assert [each["path"] for each in documents()] == ["a.md", "c.md"]
    assert [(each.path, each.reason) for each in skipped] == [
        ("b.rst", "its reader crashed; it may be damaged")
    ]
