"""Memories and collections as the store keeps them, and drafts of memories to write."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from standards_mcp import NotFoundError

from .rendering import missing_collection_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"
ReplacedParts: TypeAlias = Literal["stated", "all", "origins"]
LARGEST_ID: Final = 2**63 - 1
COPY_SUFFIX: Final = ".reembed"
"""The suffix of the copy that `reembed` makes of a collection."""
TAGS_MARK: Final = "**Tags:**"
"""The beginning of a line of content that lists tags."""
SOURCE_KEY: Final = "source"
"""The payload key of the origins of a memory."""
_PREVIEW_LENGTH: Final = 300
_PREVIEW_SENTENCES: Final = 2
_TAG: Final = re.compile(r"#([^\s#,]+)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")


class MissingCollectionError(NotFoundError):
    """A collection does not exist.

    Args:
        names: The existing collections.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.names = list(names)
        super().__init__(missing_collection_text(name, names))


@dataclass(frozen=True, slots=True)
class Collection:
    """The description of a collection.

    Attributes:
        model: The name of the model of the vectors; None if another program made them.
        dimensions: The length of the vectors; None unless each memory has one unnamed vector with
            the distance cosine.
        reembed_source: For a copy by `reembed`, the name of the original; for an original that the
            copy is replacing, its own name.
        has_words: True if titles, previews and tags are embedded with contents, and searches match
            words. False for a collection of an earlier version or another program.
    """

    name: str
    count: int
    model: str | None
    dimensions: int | None
    reembed_source: str | None = None
    has_words: bool = False

    @property
    def form(self) -> tuple[str | None, bool]:
        """The model, and True if words are matched: the properties that `reembed` changes."""
        return self.model, self.has_words

    def text_of(self, document: Document) -> str:
        """Return the text of a memory to embed."""
        if self.has_words:
            return document.text
        return document.content if document.content.strip() else document.title


class Origin(NamedTuple):
    """The file and heading that a memory was imported from.

    Paths are absolute, so that imports of a folder and of one of its files give one memory. Another
    machine has other paths; there, unchanged texts are found by their title and content.

    Attributes:
        root: The absolute path of the file or folder that was imported.
        file: The absolute path of the file; empty for `STORED`.
        heading: None for a memory that is a whole file.
        key: The `id` of the file's front matter.
        version: The hash of the text at the time of the import; empty if this file and heading
            belong to another memory now.
    """

    root: str = ""
    file: str = ""
    heading: str | None = None
    key: str | None = None
    version: str = ""

    def as_payload(self) -> dict[str, str]:
        """Return the fields for a payload; empty for `STORED`."""
        values = zip(_ORIGIN_KEYS, self, strict=True)
        return {} if self == STORED else {name: text for name, text in values if text is not None}

    @property
    def place(self) -> tuple[str, str | None]:
        """The file and the heading."""
        return self.file, self.heading

    @property
    def versioned_place(self) -> tuple[str, str | None, str]:
        """The place with the version of the text."""
        return self.file, self.heading, self.version

    def is_within(self, path: str) -> bool:
        """Return True if the file is at *path* or below it."""
        return self != STORED and PurePath(self.file).is_relative_to(path)


Origins: TypeAlias = tuple[Origin, ...]
# An origin like the others, so that one rule decides about prunes. Memories of earlier versions,
# which have no origins, get this one, too.
STORED: Final = Origin()
"""The origin of a memory that a tool or a line of JSONL stored."""
_ORIGIN_KEYS: Final = ("root", "file", "heading", "id", "hash")


@dataclass(frozen=True)
class Document:
    """A stored memory. *payload* also has the keys of other programs."""

    id: int
    payload: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The title; empty if it is missing."""
        return _text_field(self.payload, "title")

    @property
    def preview(self) -> str:
        """The preview; empty if it is missing."""
        return _text_field(self.payload, "preview")

    @property
    def content(self) -> str:
        """The content; empty if it is missing."""
        return _text_field(self.payload, "content")

    @property
    def own_tags(self) -> list[str] | None:
        """The tags of the payload; None if it has no list of tags."""
        tags = self.payload.get("tags")
        return [*map(str, cast("list[object]", tags))] if isinstance(tags, list) else None

    @property
    def tags(self) -> list[str]:
        """The tags of the payload, or else the tags that the content lists."""
        own = self.own_tags
        return tags_in(self.content) if own is None else own

    @cached_property
    def origins(self) -> Origins:
        """The files that contain the memory, and `STORED` if a tool stored it."""
        return origins_in(self.payload.get(SOURCE_KEY))

    @property
    def text(self) -> str:
        """The text that is embedded and whose words are matched."""
        # The encoder reads 256 tokens, so a preview that repeats the content would displace it.
        own = self.preview if self.preview != default_preview(self.content) else ""
        parts = (self.title, own, ", ".join(self.own_tags or []), self.content)
        return "\n".join(part for part in parts if part.strip())


Point: TypeAlias = tuple[Document, Vectors]
"""A memory with its vector, to be written."""
Hits: TypeAlias = tuple[list[tuple[Document, float]], int]
"""The memories of a search with their scores, and the number of hits left out because of UUIDs."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory to write. A field that is None keeps its stored value or gets a default.

    Attributes:
        where: The file and line for reports.
        origin: The file and heading of Markdown that the draft was read from.
        origins: The origins to store.
        replaces: The parts of a stored memory to replace. ``stated``: all fields that are not None;
            ``all``: also the others, by their defaults; ``origins``: only the origins.
    """

    title: str
    content: str
    preview: str | None = None
    tags: tuple[str, ...] | None = None
    id: int | None = None
    where: str = ""
    origin: Origin | None = None
    origins: Origins | None = None
    replaces: ReplacedParts = "stated"

    def imported_from(self, origin: Origin) -> Draft:
        """Return the draft with an origin in Markdown, and the hash of the text as its version."""
        texts = json.dumps([self.title, self.content, self.preview, self.tags, origin.key])
        version = hashlib.sha256(texts.encode()).hexdigest()
        return replace(self, origin=origin._replace(version=version))

    @property
    def is_empty(self) -> bool:
        """True if the draft has neither a title nor a content."""
        return not (self.title.strip() or self.content.strip())

    def document(self, doc_id: int, stored: Document | None = None) -> Document:
        """Return the memory to store; *stored* is the memory that it replaces."""
        payload = dict(stored.payload if stored else {})
        if self.origins is not None:
            payload.pop(SOURCE_KEY, None)
            if self.origins != (STORED,):
                payload[SOURCE_KEY] = [origin.as_payload() for origin in self.origins]
        if stored and self.replaces == "origins":
            return Document(doc_id, payload)
        if self.replaces == "all":
            payload = {key: payload[key] for key in payload.keys() - {"preview", "tags"}}
        preview = self.preview
        if preview is None:
            preview = _text_field(payload, "preview")
            if not preview or preview == default_preview(_text_field(payload, "content")):
                preview = default_preview(self.content)
        tags = {} if self.tags is None else {"tags": list(self.tags)}
        own = {"title": self.title, "preview": preview, "content": self.content}
        text = f"{self.title}\n{self.content}".encode("utf-8", "surrogatepass")
        own["content_hash"] = hashlib.sha256(text).hexdigest()
        return Document(doc_id, {**payload, **own, **tags})


def origins_in(stored: object) -> Origins:
    """Return the origins of a payload's `SOURCE_KEY`; `STORED` for values of other programs."""
    entries = cast("list[object]", stored) if isinstance(stored, list) else [stored]
    origins: dict[Origin, None] = {}
    for entry in entries:
        if isinstance(entry, Mapping):
            values = [cast("Mapping[str, Any]", entry).get(key) for key in _ORIGIN_KEYS]
            texts = (value if isinstance(value, str) else None for value in values)
            root, file, heading, key, version = texts
            if file and root is not None:
                origins[Origin(root, file, heading, key, version or "")] = None
            else:
                origins[STORED] = None
    return tuple(origins) or (STORED,)


def tags_in(content: str) -> list[str]:
    """Return the tags of the last line that begins with ``**Tags:**``, each once."""
    for line in reversed(content.split("\n")):
        if line.startswith(TAGS_MARK):
            return list(dict.fromkeys(_TAG.findall(line)))
    return []


def default_preview(content: str) -> str:
    """Return the first two sentences of a content, shortened between words."""
    # Long contents are not split whole: a word with its space has two characters at least.
    words = content.split(maxsplit=_PREVIEW_LENGTH)[:_PREVIEW_LENGTH]
    text = " ".join(words)[: _PREVIEW_LENGTH + 2]
    sentences = _SENTENCE_END.split(text, maxsplit=_PREVIEW_SENTENCES)
    return _shortened(" ".join(sentences[:_PREVIEW_SENTENCES]), _PREVIEW_LENGTH)


def preview_of(content: str, description: str) -> str:
    """Return the description of a file, followed by the preview of one of its sections."""
    description = _shortened(description, _PREVIEW_LENGTH // 2)
    return _shortened(f"{description} {default_preview(content)}".strip(), _PREVIEW_LENGTH)


def _shortened(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    return (cut.rpartition(" ")[0] or cut) + "…"


def _text_field(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""
