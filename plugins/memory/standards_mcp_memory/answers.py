"""What the tools answer."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class Preview(TypedDict):
    """A memory without its content."""

    id: int
    title: str
    preview: str
    score: Annotated[float, Field(description="Higher fits better; it may be negative.")]


class SearchAnswer(TypedDict):
    """Previews, best first."""

    collection: str
    query: str
    count: int
    results: list[Preview]
    collections: NotRequired[
        Annotated[list[str], Field(description="Those that there are, if this one is missing.")]
    ]


class DocumentAnswer(TypedDict):
    """A memory in full."""

    id: int
    collection: str
    title: str
    preview: str
    content: str
    tags: list[str]


class Reference(TypedDict):
    """Where a memory is."""

    doc_id: int
    collection: str


class BatchAnswer(TypedDict):
    """Memories in full, in the order in which they were asked for."""

    count: int
    documents: list[DocumentAnswer]
    not_found: list[Reference]


class StoreAnswer(TypedDict):
    """Where a memory was stored."""

    id: int
    collection: str
    created: Annotated[bool, Field(description="False if the same memory was there already.")]


class UpdateAnswer(TypedDict):
    """Which memory was changed."""

    id: int
    collection: str
    updated: Annotated[bool, Field(description="False if it said the same already.")]


class DeleteAnswer(TypedDict):
    """Which memory was deleted."""

    id: int
    collection: str
    deleted: bool


class CollectionEntry(TypedDict):
    """A collection."""

    name: str
    count: int
    model: str | None


class CollectionsAnswer(TypedDict):
    """All collections, by name."""

    collections: list[CollectionEntry]


class Skipped(TypedDict):
    """What an import has left out."""

    where: str
    reason: str


class Pruned(TypedDict):
    """A memory that an import has deleted."""

    id: int
    title: str


class ImportAnswer(TypedDict):
    """What an import has done."""

    collection: str
    created: int
    updated: int
    unchanged: int
    skipped: list[Skipped]
    pruned: NotRequired[
        Annotated[list[Pruned], Field(description="Memories whose file or heading is gone.")]
    ]
