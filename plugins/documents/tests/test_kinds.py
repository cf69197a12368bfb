"""Documents of each kind become sections of text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml

from standards_mcp_documents import DocumentReader

Sections = Callable[..., list[tuple[str, str, str]]]
Make = Callable[..., bytes]
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


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (
            ".md",
            "# Guide\n\nAll about it.\n\n## Install `now`\n\nRun it.\n\nSet it\n------\n\nGo.",
            [
                ("Guide", "Guide", "# Guide\n\nAll about it."),
                ("Guide", "Install now", "## Install `now`\n\nRun it."),
                ("Guide", "Set it", "Set it\n------\n\nGo."),
            ],
        ),
        (
            ".md",
            "# Guide\n\n## Install\n\nRun it.\n\n## Later",
            [
                ("Guide", "Install", "# Guide\n\n## Install\n\nRun it."),
                ("Guide", "Later", "## Later"),
            ],
        ),
        (
            ".markdown",
            '---\ntitle: "Our guide"\ntags: [x]\n---\nHello.\n\n# Install {#setup}\n\nRun.',
            [
                ("Our guide", "", "Hello."),
                ("Our guide", "Install", "# Install {#setup}\n\nRun."),
            ],
        ),
        (".txt", "# Plain\n\ntext", [("", "", "# Plain\n\ntext")]),
        (
            ".html",
            (
                "<html><head><title>Site | Guide</title><style>p {}</style></head><body>"
                "<nav>Menu</nav><main><h1>Guide<a class='headerlink' href='#'>¶</a></h1>"
                "<p>All &amp; more, <a href='x'>here</a>.</p><h2>Install</h2>"
                "<pre><code># now\nrun</code></pre>"
                "<table><tr><th>key</th></tr><tr><td>some_value</td></tr></table></main>"
                "<script>no()</script><footer>Ours</footer></body></html>"
            ),
            [
                ("Guide", "Guide", "# Guide\n\nAll & more, here."),
                (
                    "Guide",
                    "Install",
                    "## Install\n\n```\n# now\nrun\n```\n\n| key |\n| --- |\n| some_value |",
                ),
            ],
        ),
        (".htm", "<title>Only\n a title</title><p>Text.", [("Only a title", "", "Text.")]),
        (
            ".rst",
            (
                "=====\nGuide\n=====\n\nAll about it::\n\n   a\n   =\n\nInstall\n-------\n\n"
                ".. code-block:: sh\n\n   run\n\n.. note::\n   Mind.\n\n----\n\nUse\n---\n\nGo."
            ),
            [
                ("Guide", "Guide", "=====\nGuide\n=====\n\nAll about it::\n\n   a\n   ="),
                (
                    "Guide",
                    "Install",
                    (
                        "Install\n-------\n\n.. code-block:: sh\n\n   run\n\n"
                        ".. note::\n   Mind.\n\n----"
                    ),
                ),
                ("Guide", "Use", "Use\n---\n\nGo."),
            ],
        ),
    ],
)
def test_texts_are_divided_at_their_headings(
    sections: Sections, suffix: str, text: str, expected: list[tuple[str, str, str]]
):
    assert sections(suffix, text) == expected


@pytest.mark.parametrize(
    ("suffix", "text", "code"),
    [
        (".md", "Before.\n\n```sh\n# a comment\n```\n\nAfter.", "```sh\n# a comment\n```"),
        (".rst", "Run this::\n\n   a b\n   c d\n\nAfter.", "Run this::\n\n   a b\n   c d"),
    ],
)
def test_code_is_neither_divided_nor_mistaken_for_headings(
    reader: DocumentReader, suffix: str, text: str, code: str
):
    (section,) = reader.parse(text.encode(), suffix).sections
    assert [block.text for block in section.blocks if block.is_code] == [code]


def test_a_pdf_is_read_by_its_pages_and_bookmarks(sections: Sections, pdf: Make):
    pages = ("Welcome to it", "Run the program", "And so on")
    data = pdf(*pages, title="The manual", bookmarks=[(1, "Install"), (1, "Options")])
    assert sections(".pdf", data) == [
        ("The manual", "page 1", "Welcome to it"),
        ("The manual", "Install (page 2)", "Run the program"),
        ("The manual", "Options (page 3)", "And so on"),
    ]


def test_words_that_a_pdf_breaks_at_a_line_are_made_whole(reader: DocumentReader, pdf: Make):
    data = pdf("Do the instal-) Tj 0 -14 Td (lation of it) Tj 0 -14 Td (now", "", "Next")
    text = reader.parse(data, ".pdf").text
    assert text.split() == ["Do", "the", "installation", "of", "it", "now", "Next"]
    assert text.endswith("\nnow\nNext")


def test_headings_lists_and_tables_of_a_word_document_are_markdown(
    sections: Sections, word_document: Make
):
    def change(word: Any) -> None:
        word.add_heading("Guide", level=0)
        word.add_paragraph("# no heading")
        word.add_heading("Install", level=2)
        word.add_paragraph("Run it", style="List Bullet")
        word.add_paragraph("in its order", style="List Number")

    assert sections(".docx", word_document(change)) == [
        (
            "Platform engineer",
            "Platform engineer",
            (
                "# Platform engineer\n\n- Ran Kafka clusters\n\n| Go Rust | five years |\n"
                "| Terraform |\n\nThe end"
            ),
        ),
        ("Platform engineer", "Guide", "# Guide\n\n# no heading"),
        ("Platform engineer", "Install", "## Install\n\n- Run it\n\n- in its order"),
    ]


def test_the_text_of_a_word_document_has_a_line_for_each_paragraph_and_cell(
    reader: DocumentReader, word_document: Make
):
    document = reader.parse(word_document(), ".docx")
    lines = ["Platform engineer", "Ran Kafka clusters", "Go Rust", "five years", "Terraform"]
    assert document.text == "\n".join([*lines, "The end"])
    marked = ["# Platform engineer", "- Ran Kafka clusters", "Go", "Rust", "five years"]
    assert document.marked_text == "\n".join([*marked, "Terraform", "The end"])


def test_the_style_of_a_heading_counts_more_than_its_number_and_styles_inherit(
    reader: DocumentReader, word_document: Make
):
    def change(word: Any) -> None:
        number = f'<w:numPr xmlns:w="{WORD}"><w:numId w:val="1"/></w:numPr>'
        heading = word.add_heading("Numbered", 2)
        heading._p.get_or_add_pPr().append(parse_xml(number))
        word.styles.add_style("Ours", 1).base_style = word.styles["Heading 3"]
        word.add_paragraph("Inherited", style="Ours")
        word.add_paragraph("One")._p.get_or_add_pPr().append(parse_xml(number))

    marked = reader.parse(word_document(change), ".docx").marked_text
    assert marked.endswith("The end\n## Numbered\n### Inherited\n- One")


def test_a_table_within_a_table_follows_its_cell(reader: DocumentReader, word_document: Make):
    def change(word: Any) -> None:
        outer = word.add_table(1, 2)
        outer.cell(0, 0).paragraphs[0].text = "outer"
        outer.cell(0, 1).paragraphs[0].text = "last"
        outer.cell(0, 0).add_table(1, 2).cell(0, 0).paragraphs[0].text = "inner"

    lines = reader.parse(word_document(change), ".docx").text.splitlines()
    assert lines[-3:] == ["outer", "inner", "last"]


def test_boxes_and_controls_of_a_word_document_are_read_once(
    reader: DocumentReader, word_document: Make
):
    def change(word: Any) -> None:
        for xml in (BOX, CONTROL):
            word.element.body.insert(0, parse_xml(xml))

    lines = reader.parse(word_document(change), ".docx").text.split("\n")
    assert lines[:4] == ["In a control", "Beside", "In a box", "Platform engineer"]


@pytest.mark.parametrize("within", ["<w:p><w:r>{}</w:r></w:p>", "{}"])
def test_the_text_of_a_box_within_boxes_is_read_once(
    reader: DocumentReader, word_document: Make, within: str
):
    inner = "<w:txbxContent><w:p><w:r><w:t>Within</w:t></w:r></w:p></w:txbxContent>"
    for _ in range(8):
        inner = f"<w:txbxContent>{within.format(inner)}</w:txbxContent>"
    boxes = f'<w:p xmlns:w="{WORD}"><w:r><w:t>Around</w:t>{inner}</w:r></w:p>'

    def change(word: Any) -> None:
        word.element.body.insert(0, parse_xml(boxes))

    lines = reader.parse(word_document(change), ".docx").text.split("\n")
    assert lines[:3] == ["Around", "Within", "Platform engineer"]


@pytest.mark.parametrize(
    ("stated", "title"), [("The manual", "The manual"), ("", "Guide"), ("Word Document", "Guide")]
)
def test_the_title_of_a_word_document_comes_from_its_properties(
    reader: DocumentReader, stated: str, title: str
):
    word, file = docx.Document(), io.BytesIO()
    word.core_properties.title = stated
    word.add_heading("Guide", level=1)
    word.save(file)
    assert reader.parse(file.getvalue(), ".docx").title == title


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_texts_are_read_in_common_encodings(reader: DocumentReader, encoding: str):
    assert reader.parse("Größe — “x”\r\ny".encode(encoding), ".txt").text == "Größe — “x”\ny"


@pytest.mark.parametrize("declared", ["iso-8859-2", "rot13", "nonsense", "utf-8"])
def test_html_is_read_in_the_encoding_that_it_declares(reader: DocumentReader, declared: str):
    data = f"<meta charset='{declared}'><p>žluť</p>".encode(
        "iso-8859-2" if declared == "iso-8859-2" else "utf-8"
    )
    assert reader.parse(data, ".html").text == "žluť"


def test_control_characters_are_left_out(reader: DocumentReader):
    assert reader.parse("one\x0ctwo\x1b \ufffe".encode(), ".txt").text == "one two"
    unknown = "\N{REPLACEMENT CHARACTER}"
    text = reader.parse(b"<p>x&#xD800;y&#0;</p>", ".html").text
    assert text == f"x{unknown}y{unknown}"
