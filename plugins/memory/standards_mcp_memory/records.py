"""A memory, as the store keeps it and as it is given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from .origins import SOURCE_KEY, STORED, Origin, origins_in
from .texts.forms import default_preview, tags_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"
Replaced: TypeAlias = Literal["stated", "all", "origins"]
LARGEST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Document:
    """A memory of the store; *payload* has the keys that others gave it, too."""

    id: int
    payload: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Its title, empty where it has none."""
        return _text(self.payload, "title")

    @property
    def preview(self) -> str:
        """Its preview, empty where it has none."""
        return _text(self.payload, "preview")

    @property
    def content(self) -> str:
        """Its content, empty where it has none."""
        return _text(self.payload, "content")

    @property
    def own_tags(self) -> list[str] | None:
        """The tags that were given to it; None where none were."""
        tags = self.payload.get("tags")
        return [*map(str, cast("list[object]", tags))] if isinstance(tags, list) else None

    @property
    def tags(self) -> list[str]:
        """Its tags, also those that only the content names."""
        own = self.own_tags
        return tags_in(self.content) if own is None else own

    @property
    def content_hash(self) -> str:
        """What tells whether two memories say the same: made anew, since others may edit texts."""
        return hash_of(self.title, self.content)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The files that state it, and `STORED` if a tool stored it."""
        return origins_in(self.payload.get(SOURCE_KEY))

    @property
    def text(self) -> str:
        """The text that is embedded and whose words are matched."""
        # A preview that repeats the content would take its place: an encoder reads 256 tokens.
        own = self.preview if self.preview != default_preview(self.content) else ""
        parts = (self.title, own, ", ".join(self.own_tags or []), self.content)
        return "\n".join(part for part in parts if part.strip())

    def embedded_text(self, *, has_words: bool) -> str:
        """Return the text that its vector is made of.

        Args:
            has_words: False for a collection whose vectors are those of contents.
        """
        if has_words:
            return self.text
        return self.content if self.content.strip() else self.title


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory to write. What is None stays as it is stored, or is made.

    Attributes:
        where: What a report names it by.
        origin: The Markdown file that it was read from.
        origins: The origins to store.
        replaces: The parts of a stored memory to replace: title, content and those that are not
            None; all of them; or only the origins.
    """

    title: str
    content: str
    preview: str | None = None
    tags: tuple[str, ...] | None = None
    id: int | None = None
    where: str = ""
    origin: Origin | None = None
    origins: tuple[Origin, ...] | None = None
    replaces: Replaced = "stated"

    @property
    def content_hash(self) -> str:
        """As `Document.content_hash`."""
        return hash_of(self.title, self.content)

    def version(self, key: str | None) -> str:
        """Return the hash of all that a file with an `id` in its front matter says."""
        texts = json.dumps([self.title, self.content, self.preview, self.tags, key])
        return hashlib.sha256(texts.encode()).hexdigest()

    @property
    def is_empty(self) -> bool:
        """True if it has neither a title nor a content."""
        return not (self.title.strip() or self.content.strip())

    def payload(self, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what to store, in place of what is stored now."""
        before = dict(stored or {})
        if self.origins is not None:
            before.pop(SOURCE_KEY, None)
            if self.origins != (STORED,):
                before[SOURCE_KEY] = [each.as_payload() for each in self.origins]
        if stored and self.replaces == "origins":
            return before
        if self.replaces == "all":
            before = {key: before[key] for key in before.keys() - {"preview", "tags"}}
        preview = self.preview
        if preview is None:
            preview = _text(before, "preview")
            if not preview or preview == default_preview(_text(before, "content")):
                preview = default_preview(self.content)
        tags = {} if self.tags is None else {"tags": list(self.tags)}
        own = {"title": self.title, "preview": preview, "content": self.content}
        return {**before, **own, **tags, "content_hash": self.content_hash}


@dataclass(frozen=True, slots=True)
class Point:
    """A memory with its vector, to be written."""

    id: int
    vector: Vectors
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be changed of a memory; what is None stays."""

    title: str | None = None
    content: str | None = None
    preview: str | None = None
    tags: tuple[str, ...] | None = None

    def draft(self, before: Document) -> Draft:
        """Return the memory as it will be."""
        return Draft(
            title=before.title if self.title is None else self.title,
            content=before.content if self.content is None else self.content,
            preview=self.preview,
            tags=self.tags,
        )


def hash_of(title: str, content: str) -> str:
    """Return the SHA-256 of a title and a content."""
    # JSON, which has no line break, if the first one does not end the title.
    texts = json.dumps([title, content]) if "\n" in title else f"{title}\n{content}"
    return hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""
