"""The form in which notes are often written: title, preview, content and tags in bold.

**Title:** Retry on 502
**Preview:** The gateway drops the first request after a deploy.

**Content:** Wait a second, then try again.

**Tags:** #retry #http
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PREVIEW_LENGTH: Final = 300
_SENTENCES: Final = 2
_TAG: Final = re.compile(r"#([^\s#,]+)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")
_HEAD: Final = re.compile(r"\*\*(Title|Description|Preview):\*\*[ \t]*")
_CONTENT: Final = "**Content:**"
_TAGS: Final = "**Tags:**"


@dataclass(frozen=True, slots=True)
class Form:
    """What a text in this form says."""

    title: str
    preview: str | None
    content: str
    tags: tuple[str, ...]


def tags_in(content: str) -> list[str]:
    """Return the tags of the last line that begins with ``**Tags:**``, each once."""
    for line in reversed(content.split("\n")):
        if line.startswith(_TAGS):
            return list(dict.fromkeys(_TAG.findall(line)))
    return []


def default_preview(content: str) -> str:
    """Return the first two sentences of a content, shortened between words."""
    # Each word has a character and a space, so no more words are needed.
    words = content.split(maxsplit=PREVIEW_LENGTH)[:PREVIEW_LENGTH]
    text = " ".join(words)[: PREVIEW_LENGTH + 2]
    sentences = _SENTENCE_END.split(text, maxsplit=_SENTENCES)
    return _shortened(" ".join(sentences[:_SENTENCES]), PREVIEW_LENGTH)


def preview_of(content: str, description: str) -> str:
    """Return a description of a whole file and the first two sentences of a part of it."""
    description = _shortened(description, PREVIEW_LENGTH // 2)
    return _shortened(f"{description} {default_preview(content)}".strip(), PREVIEW_LENGTH)


def _shortened(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    return (cut.rpartition(" ")[0] or cut) + "…"


def read_form(text: str) -> Form | None:
    """Return what a text in the form says, or None for a text in another one."""
    head, mark, rest = text.lstrip("\ufeff \t\r\n").partition(_CONTENT)
    if not head.startswith("**Title:**") or not mark:
        return None
    parts = _HEAD.split(head)[1:]
    fields = {
        name: " ".join(value.split()) for name, value in zip(parts[::2], parts[1::2], strict=True)
    }
    return Form(
        title=fields["Title"],
        preview=fields.get("Preview") or fields.get("Description"),
        content=_without_tags(rest).strip(),
        tags=tuple(tags_in(rest)),
    )


def _without_tags(text: str) -> str:
    lines = text.rstrip().split("\n")
    if lines and lines[-1].startswith(_TAGS):
        lines.pop()
    return "\n".join(lines)
