"""Documents of each kind become sections of text."""

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


def test_a_heading_without_text_goes_with_the_next(write, build, documents):
    write({"a.md": "# Guide\n\n## Install\n\nRun it.\n\n## Later"})

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("Guide: Install", "# Guide\n\n## Install\n\nRun it."),
        ("Guide: Later", "## Later"),
    ]


def test_the_front_matter_gives_the_title_and_is_no_text(write, build, documents):
    write({"a.md": '---\ntitle: "Our guide"\ntags: [x]\n---\nHello.\n\n# Install {#setup}\n\nRun.'})

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("Our guide", "Hello."),
        ("Our guide: Install", "# Install {#setup}\n\nRun."),
    ]


def test_code_is_neither_cut_nor_taken_for_headings(write, build, documents):
    code = "```sh\n" + "# a comment\n" * 20 + "```"
    write({"a.md": f"Before {'word ' * 12}\n\n{code}\n\nAfter."})

    build(chunk_words=20, overlap_words=5)

    assert [code in each["content"] for each in documents()] == [False, True, False]


def test_html_is_read_without_navigation(write, build, documents):
    write({
        "a.html": "<html><head><title>Site | Guide</title><style>p {}</style></head><body>"
        "<nav>Menu</nav><main><h1>Guide<a class='headerlink' href='#'>¶</a></h1><p>All &amp; more, "
        "<a href='x'>here</a>.</p><h2>Install</h2><pre><code># now\nrun</code></pre>"
        "<table><tr><th>key</th></tr><tr><td>some_value</td></tr></table></main>"
        "<script>no()</script><footer>Ours</footer></body></html>",
        "b.htm": "<title>Only\n a title</title><p>Text.",
    })  # fmt: skip

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("Guide", "# Guide\n\nAll & more, here."),
        (
            "Guide: Install",
            "## Install\n\n```\n# now\nrun\n```\n\n| key |\n| --- |\n| some_value |",
        ),
        ("Only a title", "Text."),
    ]


def test_restructured_text_is_cut_at_its_headings(write, build, documents):
    write({
        "a.rst": "=====\nGuide\n=====\n\nAll about it::\n\n   a\n   =\n\nInstall\n-------\n\n"
        ".. code-block:: sh\n\n   run\n\n.. note::\n   Mind.\n\n----\n\nUse\n---\n\nGo."
    })  # fmt: skip

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("Guide", "=====\nGuide\n=====\n\nAll about it::\n\n   a\n   ="),
        (
            "Guide: Install",
            "Install\n-------\n\n.. code-block:: sh\n\n   run\n\n.. note::\n   Mind.\n\n----",
        ),
        ("Guide: Use", "Use\n---\n\nGo."),
    ]


def test_the_code_of_restructured_text_stays_whole(write, build, documents):
    code = "Run this::\n\n" + "   a b c d\n" * 10
    write({"a.rst": f"{'word ' * 15}\n\n{code}\nAfter."})

    build(chunk_words=20, overlap_words=0)

    assert [code.strip() in each["content"] for each in documents()] == [False, True, False]


def test_pdf_is_read_by_its_pages_and_bookmarks(write, build, documents, pdf):
    pages = ("Welcome to it", "Run the program", "And so on")
    write({
        "a.pdf": pdf(*pages, title="The manual", bookmarks=[(1, "Install"), (1, "Options")]),
        "plain-file.PDF": pdf("Hello"),
    })  # fmt: skip

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("The manual: page 1", "Welcome to it"),
        ("The manual: Install (page 2)", "Run the program"),
        ("The manual: Options (page 3)", "And so on"),
        ("plain file: page 1", "Hello"),
    ]


def test_words_that_a_pdf_breaks_at_a_line_are_made_whole(write, build, documents, pdf):
    write({"a.pdf": pdf("Do the instal-) Tj 0 -14 Td (lation of it) Tj 0 -14 Td (now")})

    build()

    assert documents()[0]["content"].split() == ["Do", "the", "installation", "of", "it", "now"]


def test_word_documents_are_read_with_their_headings_lists_and_tables(write, build, documents):
    word = docx.Document()
    word.core_properties.title = ""
    word.add_heading("Guide", level=0)
    word.add_paragraph("All about it.")
    word.add_heading("Install", level=2)
    word.add_paragraph("Run it", style="List Bullet")
    table = word.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "key", "value"
    word.add_paragraph(" ")
    word.add_paragraph("# no heading")
    file = io.BytesIO()
    word.save(file)
    write({"a.docx": file.getvalue()})

    build()

    assert [(each["title"], each["content"]) for each in documents()] == [
        ("Guide", "# Guide\n\nAll about it."),
        ("Guide: Install", "## Install\n\n- Run it\n\n| key | value |\n\n# no heading"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_texts_are_read_in_the_encodings_that_are_about(encoding, write, build, documents):
    write({"a.txt": "Größe — “x”\r\ny".encode(encoding)})

    build()

    assert documents()[0]["content"] == "Größe — “x”\ny"


@pytest.mark.parametrize("declared", ["iso-8859-2", "rot13", "nonsense", "utf-8"])
def test_html_is_read_in_the_encoding_that_it_declares(declared, write, build, documents):
    text = f"<meta charset='{declared}'><p>žluť</p>"
    write({"a.html": text.encode("iso-8859-2" if declared == "iso-8859-2" else "utf-8")})

    build()

    assert documents()[0]["content"] == "žluť"


def test_control_characters_are_left_out(write, build, documents):
    write({"a.txt": "one\x0ctwo\x1b \ufffe", "b.html": "<p>x&#xD800;y&#0;</p>"})

    build()

    unknown = "\N{REPLACEMENT CHARACTER}"
    assert [each["content"] for each in documents()] == ["one two", f"x{unknown}y{unknown}"]
