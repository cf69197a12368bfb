"""Reads Markdown: its headings and its code, as CommonMark finds them. The rest stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from standards_mcp_knowledge.building.document import Document, Outline, clean, one_line

# Outside of headings, what stands within a paragraph is not looked at.
_BLOCKS: Final = MarkdownIt("commonmark").disable("inline")
_INLINE: Final = MarkdownIt("commonmark")
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_TITLE: Final = re.compile(r"^title:[ \t]*(.+)$", re.MULTILINE)
_ANCHOR: Final = re.compile(r"\s*\{:?\s*#[^}]*\}$")
_LONGEST_HEADING: Final = 1_000
_CODE: Final = ("fence", "code_block")


def read_markdown(text: str, title: str = "") -> Document:
    """Return the sections of *text*, which end at its headings.

    Args:
        title: The title where *text* has none: neither in its front matter nor as a heading.
    """
    text = clean(text)
    stated = ""
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
        stated = _title_in(front[1] or "")
    outline = Outline(stated)
    lines = text.split("\n")
    done = 0
    for token, heading in _landmarks(_BLOCKS.parse(text)):
        start, end = token.map or (done, done)
        outline.add("\n".join(lines[done:start]))
        here = "\n".join(lines[start:end])
        if heading is None:
            outline.add(here, is_code=True)
        else:
            outline.start(_plain(heading), int(token.tag[1:]), here)
        done = end
    outline.add("\n".join(lines[done:]))
    document = outline.document()
    return Document(document.title or one_line(title), document.sections)


def _landmarks(tokens: Sequence[Token]) -> Iterator[tuple[Token, str | None]]:
    """Yield code, and top headings with their Markdown."""
    for position, token in enumerate(tokens):
        if token.type in _CODE:
            yield token, None
        elif token.type == "heading_open" and token.level == 0:
            yield token, tokens[position + 1].content


def _plain(heading: str) -> str:
    """Return the text of a heading without its marks."""
    heading = _ANCHOR.sub("", heading[:_LONGEST_HEADING])
    children = _INLINE.parseInline(heading)[0].children or []
    return "".join(
        " " if child.type == "softbreak" else child.content
        for child in children
        if child.type != "html_inline"
    )


def _title_in(front_matter: str) -> str:
    found = _TITLE.search(front_matter)
    return found[1].strip().strip("\"'") if found else ""
