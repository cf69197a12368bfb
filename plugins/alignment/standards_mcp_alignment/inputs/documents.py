"""Lessons in documents: Markdown, HTML, text, Word and PDF files."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from standards_mcp_documents import Document, Section

from .items import InputError, Item, checked_items, make_item

Split: TypeAlias = Literal["file", "section"]
_FIELD_LINE: Final = re.compile(
    r"\W{0,4}(grades?|grade levels?|subject)\W{0,3}:\W*(.{1,40})", re.IGNORECASE
)
_FIELD_LINES: Final = 40
"""Number of the first lines in which the grade and the subject are looked for."""


def document_items(name: str, document: Document, split: Split) -> list[Item]:
    """Return a document as one item, or as one item for each section with text.

    A line such as ``Grade: 4`` or ``**Subject:** science`` near the beginning gives the grade and
    the subject of all its items.

    Raises:
        InputError: The document has no text.
    """
    fields = _stated_fields(document.text)
    items = [make_item(name, "", {**fields, "title": document.title, "text": document.text})]
    if split == "section":
        sections = [(section.heading, _text(section)) for section in document.sections]
        items = [
            make_item(name, heading or f"section {number}", {**fields, "title": heading} | text)
            for number, (heading, text) in enumerate(sections, 1)
            if text["text"]
        ]
    checked = checked_items(items)
    if not checked:
        raise InputError("it has no text")
    return checked


def _text(section: Section) -> dict[str, str]:
    """Return the text of a section below its heading."""
    blocks = [block.text for block in section.blocks]
    if blocks and section.heading and section.heading in blocks[0]:
        del blocks[0]
    return {"text": "\n".join(blocks).strip()}


def _stated_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in text.split("\n", _FIELD_LINES)[:_FIELD_LINES]:
        if match := _FIELD_LINE.match(line):
            field = "subject" if match[1].lower() == "subject" else "grade"
            fields.setdefault(field, match[2].strip(" *_|"))
    return fields
