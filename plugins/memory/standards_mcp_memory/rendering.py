"""Render answers as Markdown for models and as plain text for terminals.

Stored texts come from strangers, so nothing in them can pass for a part of the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

from .schemas import BatchAnswer, DocumentAnswer, SearchAnswer

_CONTROLS: Final = ("Cc", "Cf", "Cs")
_LINE_CONTROLS: Final = (*_CONTROLS, "Zl", "Zp")
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>()#+\-!|~]")
_START: Final = re.compile(r"^([0-9]*)(\.(?=\s|$)|=+$)")
_TICKS: Final = re.compile(r"`+")
_SHORTEST_FENCE: Final = 3


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters and runs of white space."""
    spaced = (" " if unicodedata.category(char) in _LINE_CONTROLS else char for char in text)
    return " ".join("".join(spaced).split())


def inline(text: str) -> str:
    """Return a text in one line, with all Markdown syntax escaped."""
    line = _SPECIAL.sub(lambda match: "\\" + match[0], one_line(text))
    # List items and the underlines of headings are syntax only at the start of a line.
    return _START.sub(r"\1\\\2", line)


def fenced(text: str) -> str:
    """Return a text in a fence that nothing in it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def no_collection(name: str, names: Iterable[str], shown: Callable[[str], str] = one_line) -> str:
    """Return the message for a missing collection, with the existing names.

    Args:
        shown: Formats a name.
    """
    listed = ", ".join(map(shown, names))
    existing = f"There are: {listed}." if listed else "No collection exists yet."
    return f"Collection {shown(name)} not found. {existing}"


def left_out(count: int) -> str:
    """Return the note on memories of other programs, whose ids are UUIDs."""
    return f"Memories left out because their ids are not numbers: {count}."


def without_words(collection: str) -> str:
    """Return the note on a collection that embeds contents only."""
    return (
        f"Collection {one_line(collection)} was made by an earlier version or another program, so "
        "only the meaning of contents was searched. Run `standards-mcp memory reembed` for it to "
        "search titles, previews, tags and single words, too."
    )


def render_search(answer: SearchAnswer) -> str:
    """Return the previews as a list in Markdown."""
    name = inline(answer["collection"])
    parts = [f"# Memories in {name}"]
    parts += [
        f"{rank}. **{inline(preview['title']) or 'Untitled'}** "
        f"(id {preview['id']}, score {preview['score']:.3f})\n"
        f"   {inline(preview['preview'])}".rstrip()
        for rank, preview in enumerate(answer["results"], 1)
    ]
    if "collections" in answer:
        parts.append(no_collection(answer["collection"], answer["collections"], inline))
    elif not answer["results"]:
        parts.append(f"Collection {name} is empty.")
    return "\n\n".join(parts)


def render_document(answer: DocumentAnswer, heading: str = "#") -> str:
    """Return a memory in full as Markdown, its content in a fence."""
    tags = ", ".join(map(inline, answer["tags"]))
    about = f"id {answer['id']}, collection {inline(answer['collection'])}"
    parts = [
        f"{heading} {inline(answer['title']) or 'Untitled'}",
        f"{about}, tags: {tags}" if tags else about,
    ]
    if preview := inline(answer["preview"]):
        parts.append(f"> {preview}")
    return "\n\n".join([*parts, fenced(answer["content"])])


def render_batch(answer: BatchAnswer) -> str:
    """Return memories as Markdown, and the references that were not found."""
    parts = [render_document(document, "##") for document in answer["documents"]]
    if references := answer["not_found"]:
        missing = (f"id {ref['doc_id']} in {inline(ref['collection'])}" for ref in references)
        parts.append(f"Not found: {'; '.join(missing)}.")
    return "\n\n".join(parts)


def previews_for_terminal(answer: SearchAnswer) -> str:
    """Return the previews as plain text."""
    if "collections" in answer:
        return no_collection(answer["collection"], answer["collections"])
    parts = [
        f"{rank}. {one_line(preview['title'])} (id {preview['id']}, score {preview['score']:.3f})\n"
        f"   {one_line(preview['preview'])}".rstrip()
        for rank, preview in enumerate(answer["results"], 1)
    ]
    return "\n".join(parts) or f"Collection {one_line(answer['collection'])} is empty."


def document_for_terminal(answer: DocumentAnswer) -> str:
    """Return a memory as plain text, without control characters."""
    tags = ", ".join(map(one_line, answer["tags"]))
    about = f"id {answer['id']}, collection {one_line(answer['collection'])}"
    head = [one_line(answer["title"]), f"{about}, tags: {tags}" if tags else about]
    preview = one_line(answer["preview"])
    content = "".join(
        char if char in "\n\t" or unicodedata.category(char) not in _CONTROLS else " "
        for char in answer["content"]
    )
    return "\n\n".join(["\n".join(head), *([preview] if preview else []), content])
