"""Render answers as Markdown for models and as plain text for terminals.

Stored texts come from strangers. They are escaped, so that none can pass for a part of the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .schemas import BatchAnswer, DocumentAnswer, SearchAnswer

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


def without_controls(text: str) -> str:
    """Return a text without control characters except line breaks and tabs."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in _CONTROLS else " "
        for char in text
    )


class Style(NamedTuple):
    """A format of answers.

    Attributes:
        line: Formats a text in one line.
        block: Formats a text of several lines.
    """

    line: Callable[[str], str]
    block: Callable[[str], str]
    bold: str = ""
    heading: str = ""
    quote: str = ""


MARKDOWN: Final = Style(inline, fenced, "**", "# ", "> ")
PLAIN: Final = Style(one_line, without_controls)


def missing_collection_text(
    name: str, names: Iterable[str], line: Callable[[str], str] = one_line
) -> str:
    """Return the message for a missing collection, with the existing names."""
    listed = ", ".join(map(line, names))
    existing = f"There are: {listed}." if listed else "No collection exists yet."
    return f"Collection {line(name)} not found. {existing}"


def left_out_note(count: int) -> str:
    """Return the note on memories of other programs, whose ids are UUIDs."""
    return f"Memories left out because their ids are not numbers: {count}."


def render_search(answer: SearchAnswer, style: Style = MARKDOWN) -> str:
    """Return the previews as a list, or the reason why there are none."""
    name = style.line(answer["collection"])
    parts = [f"{style.heading}Memories in {name}"] if style.heading else []
    parts += [
        f"{rank}. {style.bold}{style.line(preview['title']) or 'Untitled'}{style.bold} "
        f"(id {preview['id']}, score {preview['score']:.3f})\n"
        f"   {style.line(preview['preview'])}".rstrip()
        for rank, preview in enumerate(answer["results"], 1)
    ]
    if "collections" in answer:
        parts.append(
            missing_collection_text(answer["collection"], answer["collections"], style.line)
        )
    elif not answer["results"]:
        parts.append(f"Collection {name} is empty.")
    return ("\n\n" if style.heading else "\n").join(parts)


def render_document(answer: DocumentAnswer, style: Style = MARKDOWN) -> str:
    """Return a memory in full."""
    tags = ", ".join(map(style.line, answer["tags"]))
    facts = f"id {answer['id']}, collection {style.line(answer['collection'])}"
    parts = [
        f"{style.heading}{style.line(answer['title']) or 'Untitled'}",
        f"{facts}, tags: {tags}" if tags else facts,
    ]
    if preview := style.line(answer["preview"]):
        parts.append(f"{style.quote}{preview}")
    return "\n\n".join([*parts, style.block(answer["content"])])


def render_batch(answer: BatchAnswer) -> str:
    """Return memories as Markdown, and the references that were not found."""
    style = MARKDOWN._replace(heading="## ")
    parts = [render_document(document, style) for document in answer["documents"]]
    if references := answer["not_found"]:
        missing = (f"id {ref['doc_id']} in {inline(ref['collection'])}" for ref in references)
        parts.append(f"Not found: {'; '.join(missing)}.")
    return "\n\n".join(parts)
