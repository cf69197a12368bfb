"""How memories look to people."""

from __future__ import annotations

import unicodedata
from typing import Final

from standards_mcp_memory.answers import DocumentAnswer, SearchAnswer
from standards_mcp_memory.texts.markdown import no_collection, one_line

_UNSEEN: Final = ("Cc", "Cf", "Cs")


def shown_previews(found: SearchAnswer) -> str:
    """Return the previews of a search."""
    if "collections" in found:
        return no_collection(found["collection"], found["collections"])
    parts = [
        f"{rank}. {one_line(each['title'])} (id {each['id']}, score {each['score']:.3f})\n"
        f"   {one_line(each['preview'])}".rstrip()
        for rank, each in enumerate(found["results"], 1)
    ]
    return "\n".join(parts) or f"There are no memories in {found['collection']}."


def shown_document(found: DocumentAnswer) -> str:
    """Return a memory in full, without what steers a screen."""
    tags = ", ".join(map(one_line, found["tags"]))
    about = f"id {found['id']}, collection {one_line(found['collection'])}"
    head = [one_line(found["title"]), f"{about}, tags: {tags}" if tags else about]
    preview = one_line(found["preview"])
    parts = ["\n".join(head), *([preview] if preview else []), _safe(found["content"])]
    return "\n\n".join(parts)


def _safe(text: str) -> str:
    return "".join(
        each if each in "\n\t" or unicodedata.category(each) not in _UNSEEN else " "
        for each in text
    )
