"""Documents become passages with titles; the tests of `standards_mcp_documents` have the rest."""

import io

import docx
import pytest


@pytest.fixture
def titles(documents):
    return lambda: [each["title"] for each in documents()]


def test_markdown_is_cut_at_its_headings(write, build, documents):
    write({
        "install-guide.md": "# Guide\n\nAll about it.\n\n## Install `now`\n\nRun it.\n\n"
        "Set it up\n---------\n\nThen **go**.\n"
    })  # fmt: skip

    report = build()

    assert (report.files, report.chunks, report.unchanged, report.skipped) == (1, 3, 0, [])
    assert documents() == [
        {
            "id": "guide-1",
            "title": "Guide",
            "path": "install-guide.md",
            "content": "# Guide\n\nAll about it.",
            "snippet": "# Guide\n\nAll about it.",
            "chunk": 1,
            "chunk_total": 3,
        },
        {
            "id": "guide-2",
            "title": "Guide: Install now",
            "path": "install-guide.md",
            "content": "## Install `now`\n\nRun it.",
            "snippet": "## Install `now`\n\nRun it.",
            "chunk": 2,
            "chunk_total": 3,
        },
        {
            "id": "guide-3",
            "title": "Guide: Set it up",
            "path": "install-guide.md",
            "content": "Set it up\n---------\n\nThen **go**.",
            "snippet": "Set it up\n---------\n\nThen **go**.",
            "chunk": 3,
            "chunk_total": 3,
        },
    ]


def test_a_file_without_a_title_has_its_name_as_title(write, build, titles):
    write({"a/how-to-install.md": "Run it.\n\n## Then\n\nGo.", "notes-of-may.txt": "Sun."})

    build()

    assert titles() == ["how to install", "how to install: Then", "notes of may"]


def test_code_is_neither_cut_nor_taken_for_headings(write, build, documents):
    code = "```sh\n" + "# a comment\n" * 20 + "```"
    write({"a.md": f"Before {'word ' * 12}\n\n{code}\n\nAfter."})

    build(chunk_words=20, overlap_words=5)

    assert [code in each["content"] for each in documents()] == [False, True, False]


def test_the_code_of_restructured_text_stays_whole(write, build, documents):
    code = "Run this::\n\n" + "   a b c d\n" * 10
    write({"a.rst": f"{'word ' * 15}\n\n{code}\nAfter."})

    build(chunk_words=20, overlap_words=0)

    assert [code.strip() in each["content"] for each in documents()] == [False, True, False]


def test_word_documents_are_cut_at_their_headings(write, build, documents):
    word = docx.Document()
    word.core_properties.title = ""
    word.add_heading("Guide", level=0)
    word.add_paragraph("All about it.")
    word.add_heading("Install", level=2)
    word.add_paragraph("Run it", style="List Bullet")
    table = word.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "key", "value"
    word.add_paragraph("# no heading")
    file = io.BytesIO()
    word.save(file)
    write({"a.docx": file.getvalue()})

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("Guide", "# Guide\n\nAll about it."),
        ("Guide: Install", "## Install\n\n- Run it\n\n| key | value |\n\n# no heading"),
    ]
