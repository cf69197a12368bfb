"""Read plain text, Markdown and HTML as documents."""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from bs4 import BeautifulSoup
from bs4.dammit import EncodingDetector
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdownify import MarkdownConverter

from .document import Block, Document, DocumentError, Outline, clean, one_line
from .restructured import read_rst

_BYTE_ORDER_MARKS: Final = (
    # UTF-32 comes first, because its mark begins with the mark of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def decode(data: bytes, declared: str | None = None) -> str:
    """Return *data* as text: by its byte order mark, as declared, as UTF-8, else Windows-1252.

    Raises:
        DocumentError: *data* is not text, or is UTF-16 without a byte order mark.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise DocumentError("it is not text, or is UTF-16 without a mark; save it as UTF-8")
    for name in (declared or "utf-8", "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeError):
            continue
    return data.decode("cp1252", "replace")


def read_text(text: str) -> Document:
    """Return *text* as one section without a heading."""
    outline = Outline()
    outline.add(text)
    return outline.document()


# Only headings need inline parsing, so it is off for blocks.
_BLOCK_PARSER: Final = MarkdownIt("commonmark").disable("inline")
_INLINE_PARSER: Final = MarkdownIt("commonmark")
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_TITLE: Final = re.compile(r"^title:[ \t]*(.+)$", re.MULTILINE)
_ANCHOR: Final = re.compile(r"\s*\{:?\s*#[^}]*\}$")
_LONGEST_HEADING: Final = 1_000
_CODE_TOKENS: Final = ("fence", "code_block")


def read_markdown(text: str, title: str = "") -> Document:
    """Read Markdown as a document with a section for each heading.

    Args:
        title: The title if *text* has none in its front matter or as a heading.
    """
    text = clean(text)
    front_title = ""
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
        title_line = _TITLE.search(front[1] or "")
        front_title = title_line[1].strip().strip("\"'") if title_line else ""
    outline = Outline(front_title)
    lines = text.split("\n")
    next_line = 0
    for token, heading in _code_and_headings(_BLOCK_PARSER.parse(text)):
        start, end = token.map or (next_line, next_line)
        outline.add("\n".join(lines[next_line:start]))
        block = "\n".join(lines[start:end])
        if heading is None:
            outline.add(block, is_code=True)
        else:
            outline.start(_plain_text(heading), int(token.tag[1:]), Block(clean(block)))
        next_line = end
    outline.add("\n".join(lines[next_line:]))
    document = outline.document()
    return Document(document.title or one_line(title), document.sections)


def _code_and_headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, str | None]]:
    """Yield code with None, and headings outside of lists and quotes with their Markdown."""
    for position, token in enumerate(tokens):
        if token.type in _CODE_TOKENS:
            yield token, None
        elif token.type == "heading_open" and token.level == 0:
            yield token, tokens[position + 1].content


def _plain_text(heading: str) -> str:
    """Return the text of a heading without markup."""
    heading = _ANCHOR.sub("", heading[:_LONGEST_HEADING])
    children = _INLINE_PARSER.parseInline(heading)[0].children or []
    return "".join(
        " " if child.type == "softbreak" else child.content
        for child in children
        if child.type != "html_inline"
    )


_MAIN_SELECTORS: Final = ("main", "[role=main]", "article", "body")
_REMOVED_SELECTORS: Final = (
    "script, style, noscript, template, svg, nav, footer, form, iframe, head, title, a.headerlink"
)


def read_html(data: bytes) -> Document:
    """Read an HTML page as a document, without the navigation.

    Raises:
        DocumentError: The page is not text.
        RecursionError: Its elements are nested too deep.
        bs4.exceptions.ParserRejectedMarkup: It is not HTML.
    """
    text = decode(data, EncodingDetector.find_declared_encoding(data, is_html=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example on XHTML, which is read as HTML
        soup = BeautifulSoup(text, "html.parser")
    title = soup.title.get_text() if soup.title else ""
    for element in soup.select(_REMOVED_SELECTORS):
        element.decompose()
    return read_markdown(_markdown(soup), title)


def _markdown(soup: BeautifulSoup) -> str:
    parts = (soup.select_one(selector) for selector in _MAIN_SELECTORS)
    main = next((part for part in parts if part is not None), soup)
    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        strip=["a", "img"],  # addresses do not answer questions
    )
    return converter.convert_soup(main)


READERS: Final[Mapping[str, Callable[[bytes], Document]]] = {
    ".md": lambda data: read_markdown(decode(data)),
    ".markdown": lambda data: read_markdown(decode(data)),
    ".html": read_html,
    ".htm": read_html,
    ".txt": lambda data: read_text(decode(data)),
    ".rst": lambda data: read_rst(decode(data)),
}
"""Readers of the kinds of documents that are text."""
