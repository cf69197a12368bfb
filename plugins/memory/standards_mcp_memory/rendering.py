"""Render answers as Markdown for models and as plain text for terminals.

Stored texts come from strangers. They are escaped, so that none can pass for a part of the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from .schemas import BatchAnswer, DocumentAnswer, SearchAnswer

TextFormatter: TypeAlias = Callable[[str], str]
_CONTROLS: Final = ("Cc", "Cf", "Cs")
_LINE_CONTROLS: Final = (*_CONTROLS, "Zl", "Zp")
_MARKDOWN_SYNTAX: Final = re.compile(r"[\\`*_{}\[\]<>()#+\-!|~]")
_LINE_START_SYNTAX: Final = re.compile(r"^([0-9]*)(\.(?=\s|$)|=+$)")
_TICKS: Final = re.compile(r"`+")
_SHORTEST_FENCE: Final = 3


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters and runs of white space."""
    spaced = (" " if unicodedata.category(char) in _LINE_CONTROLS else char for char in text)
    return " ".join("".join(spaced).split())


def inline(text: str) -> str:
    """Return a text in one line, with all Markdown syntax escaped."""
    line = _MARKDOWN_SYNTAX.sub(lambda match: "\\" + match[0], one_line(text))
    # List items and the underlines of headings are syntax only at the start of a line.
    return _LINE_START_SYNTAX.sub(r"\1\\\2", line)


def fenced(text: str) -> str:
    """Return a text in a fence that nothing in it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def missing_collection_text(
    name: str, names: Iterable[str], format_text: TextFormatter = one_line
) -> str:
    """Return the message for a missing collection, with the existing names.

    Args:
        format_text: Formats a name.
    """
    listed = ", ".join(map(format_text, names))
    existing = f"There are: {listed}." if listed else "No collection exists yet."
    return f"Collection {format_text(name)} not found. {existing}"


def left_out_note(count: int) -> str:
    """Return the note on memories of other programs, whose ids are UUIDs."""
    return f"Memories left out because their ids are not numbers: {count}."


def without_words_note(collection: str) -> str:
    """Return the note on a collection that embeds contents only."""
    return (
        f"Collection {one_line(collection)} was made by an earlier version or another program, so "
        "only the meaning of contents was searched. Run `standards-mcp memory reembed` for it to "
        "search titles, previews, tags and single words, too."
    )


def render_search(answer: SearchAnswer) -> str:
    """Return the previews as a list in Markdown."""
    heading = f"# Memories in {inline(answer['collection'])}"
    parts = [heading, *_previews(answer, inline, "**"), _reason_for_none(answer, inline)]
    return "\n\n".join(filter(None, parts))


def render_document(answer: DocumentAnswer, heading: str = "#") -> str:
    """Return a memory in full as Markdown, its content in a fence."""
    parts = [f"{heading} {inline(answer['title']) or 'Untitled'}", _facts_line(answer, inline)]
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
    return "\n".join(_previews(answer, one_line)) or _reason_for_none(answer, one_line)


def document_for_terminal(answer: DocumentAnswer) -> str:
    """Return a memory as plain text, without control characters."""
    head = f"{one_line(answer['title'])}\n{_facts_line(answer, one_line)}"
    content = "".join(
        char if char in "\n\t" or unicodedata.category(char) not in _CONTROLS else " "
        for char in answer["content"]
    )
    return "\n\n".join(filter(None, [head, one_line(answer["preview"]), content]))


def _previews(answer: SearchAnswer, format_text: TextFormatter, mark: str = "") -> list[str]:
    return [
        f"{rank}. {mark}{format_text(preview['title']) or 'Untitled'}{mark} "
        f"(id {preview['id']}, score {preview['score']:.3f})\n"
        f"   {format_text(preview['preview'])}".rstrip()
        for rank, preview in enumerate(answer["results"], 1)
    ]


def _reason_for_none(answer: SearchAnswer, format_text: TextFormatter) -> str:
    if "collections" in answer:
        return missing_collection_text(answer["collection"], answer["collections"], format_text)
    return "" if answer["results"] else f"Collection {format_text(answer['collection'])} is empty."


def _facts_line(answer: DocumentAnswer, format_text: TextFormatter) -> str:
    tags = ", ".join(map(format_text, answer["tags"]))
    facts = f"id {answer['id']}, collection {format_text(answer['collection'])}"
    return f"{facts}, tags: {tags}" if tags else facts
