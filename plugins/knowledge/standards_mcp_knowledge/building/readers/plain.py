"""Reads plain text."""

from standards_mcp_knowledge.building.document import Document, Outline


def read_text(text: str) -> Document:
    """Return *text* as one section without a heading."""
    outline = Outline()
    outline.add(text)
    return outline.document()
