"""Read plain text, Markdown, HTML and reStructuredText as documents."""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from bs4 import BeautifulSoup
from bs4.dammit import EncodingDetector
from bs4.exceptions import ParserRejectedMarkup
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdownify import MarkdownConverter

from .document import Document, DocumentError, Outline, clean, one_line

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
        raise DocumentError("is not text, or is UTF-16 without a mark; save it as UTF-8")
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
            outline.start(_plain_text(heading), int(token.tag[1:]), block)
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
        DocumentError: The page is not HTML, or its elements are nested too deep.
    """
    text = decode(data, EncodingDetector.find_declared_encoding(data, is_html=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example on XHTML, which is read as HTML
        try:
            soup = BeautifulSoup(text, "html.parser")
        except ParserRejectedMarkup as error:
            raise DocumentError("is damaged or not HTML") from error
    title = soup.title.get_text() if soup.title else ""
    try:
        for element in soup.select(_REMOVED_SELECTORS):
            element.decompose()
        return read_markdown(_markdown(soup), title)
    except RecursionError:
        raise DocumentError("its elements are nested too deep") from None


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


_RULE: Final = re.compile(r"([!-/:-@\[-`{-~])\1+\s*")
_CODE_DIRECTIVE: Final = re.compile(r"\s*\.\. (code|code-block|sourcecode|parsed-literal|prompt)::")
_DIRECTIVE: Final = re.compile(r"\s*\.\. ")


def read_rst(text: str) -> Document:
    """Read reStructuredText as a document with a section for each heading.

    Docutils is not used, because it reports the directives of Sphinx as errors and drops their
    contents.
    """
    lines = clean(text).split("\n")
    outline = Outline()
    styles: list[tuple[str, bool]] = []
    next_line = position = 0
    while position < len(lines):
        height = _height_of_heading(lines, position)
        end = position + height if height else _end_of_code(lines, position)
        if end == position:
            position += 1
            continue
        outline.add("\n".join(lines[next_line:position]))
        block = "\n".join(lines[position:end])
        if height:
            style = lines[end - 1][0], height > _UNDERLINED_HEIGHT
            if style not in styles:
                styles.append(style)
            outline.start(lines[end - 2], styles.index(style) + 1, block)
        else:
            outline.add(block, is_code=True)
        next_line = position = end
    outline.add("\n".join(lines[next_line:]))
    return outline.document()


_UNDERLINED_HEIGHT: Final = 2
_OVERLINED_HEIGHT: Final = 3


def _height_of_heading(lines: Sequence[str], start: int) -> int:
    """Return the number of lines of the heading at *start*: 2 if underlined, 3 with overline."""
    if start and lines[start - 1].strip():
        return 0
    if _is_underlined(lines, start) and not lines[start][0].isspace():
        return _UNDERLINED_HEIGHT
    over = lines[start].rstrip()
    if _is_underlined(lines, start + 1) and over == lines[start + 2].rstrip():
        return _OVERLINED_HEIGHT
    return 0


def _is_underlined(lines: Sequence[str], start: int) -> bool:
    if start + 1 >= len(lines):
        return False
    title, rule = lines[start].rstrip(), lines[start + 1].rstrip()
    is_title = bool(title) and not _RULE.fullmatch(title)
    return is_title and bool(_RULE.fullmatch(rule)) and len(rule) >= len(title)


def _end_of_code(lines: Sequence[str], start: int) -> int:
    """Return the line after the code block at *start*; *start* if there is no code block.

    A code block follows a line that ends with two colons, and is indented more than that line.
    """
    line = lines[start]
    is_literal = line.rstrip().endswith("::") and not _DIRECTIVE.match(line)
    if not is_literal and not _CODE_DIRECTIVE.match(line):
        return start
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(line)):
        end += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
