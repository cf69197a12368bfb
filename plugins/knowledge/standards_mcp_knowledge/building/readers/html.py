"""Reads HTML: its main part, as Markdown."""

from __future__ import annotations

import warnings
from typing import Final

from bs4 import BeautifulSoup
from bs4.dammit import EncodingDetector
from bs4.exceptions import ParserRejectedMarkup
from markdownify import MarkdownConverter

from standards_mcp_knowledge.building.document import Document, DocumentError

from .decoding import decode
from .markdown import read_markdown

_MAIN: Final = ("main", "[role=main]", "article", "body")
_NOT_TEXT: Final = (
    "script, style, noscript, template, svg, nav, footer, form, iframe, head, title, a.headerlink"
)


def read_html(data: bytes) -> Document:
    """Return the sections of a page, without its navigation.

    Raises:
        DocumentError: It is no HTML, or its elements are nested too deep.
    """
    text = decode(data, EncodingDetector.find_declared_encoding(data, is_html=True))
    soup = _parsed(text)
    title = soup.title.get_text() if soup.title else ""
    try:
        for element in soup.select(_NOT_TEXT):
            element.decompose()
        return read_markdown(_markdown(soup), title)
    except RecursionError:
        raise DocumentError("its elements are nested too deep") from None


def _parsed(text: str) -> BeautifulSoup:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that XHTML is read as HTML
        try:
            return BeautifulSoup(text, "html.parser")
        except ParserRejectedMarkup as error:
            raise DocumentError("is damaged, or is no HTML") from error


def _markdown(soup: BeautifulSoup) -> str:
    parts = (soup.select_one(selector) for selector in _MAIN)
    main = next((part for part in parts if part is not None), soup)
    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        strip=["a", "img"],  # addresses say nothing to who asks
    )
    return converter.convert_soup(main)
