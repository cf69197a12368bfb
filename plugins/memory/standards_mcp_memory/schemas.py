"""Arguments of the tools with their bounds, and the shapes of answers."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, ValidationError
from typing_extensions import TypedDict

from .records import LARGEST_ID

DEFAULT_RESULTS: Final = 20
LONGEST_NAME: Final = 100


def first_error(error: ValidationError) -> str:
    """Return the first error of a model in one line, without the input, which may be secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    position, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{position}: {message}" if position else message


def _check_name(name: str) -> str:
    if name in (".", ".."):
        raise ValueError("the name of a collection is not . or ..")
    if any(char in "/\\" or unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise ValueError("the name of a collection has no /, no \\ and no control characters")
    return name


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is white space only")
    return text


# Pydantic refuses half characters (lone surrogates), which UTF-8 cannot contain, in each text with
# a bound.
Format: TypeAlias = Annotated[Literal["markdown", "json"], Field(description="Format of the text.")]
CollectionName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_NAME,
        description="A collection: the role or the topic whose memories it holds.",
        json_schema_extra={"pattern": r"^[^/\\\x00-\x1f\x7f]+$"},
    ),
    AfterValidator(_check_name),
]
Query = Annotated[
    str,
    Field(min_length=2, max_length=500, description="A question or a few words."),
    AfterValidator(_check_not_blank),
]
Limit = Annotated[StrictInt, Field(ge=1, le=100, description="The most previews.")]
DocumentId = Annotated[
    StrictInt, Field(ge=1, le=LARGEST_ID, description="The id of a memory, from memory_search.")
]
Title = Annotated[
    str,
    Field(min_length=1, max_length=500, description="The subject of the memory, in a line."),
    AfterValidator(_check_not_blank),
]
Content = Annotated[
    str, Field(max_length=200_000, description="The whole text to remember, in Markdown.")
]
PreviewText = Annotated[
    str,
    Field(max_length=2000, description="Two or three sentences that help to decide on a fetch."),
]
_Tag = Annotated[str, Field(pattern=r"^[^\s#,]+$", max_length=100)]
Tags = Annotated[list[_Tag], Field(max_length=50, description="Words without # and spaces.")]


class DocumentReference(BaseModel):
    """The id of a memory with its collection."""

    model_config = ConfigDict(extra="forbid")

    doc_id: DocumentId
    collection: CollectionName


References = Annotated[
    list[DocumentReference],
    Field(min_length=1, max_length=50, description="The memories to fetch."),
]


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
        Annotated[list[str], Field(description="The existing collections, if this one is missing.")]
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
    """The id of a memory with its collection."""

    doc_id: int
    collection: str


class BatchAnswer(TypedDict):
    """Memories in full, in the order of the references."""

    count: int
    documents: list[DocumentAnswer]
    not_found: list[Reference]


class _WrittenAnswer(TypedDict):
    id: int
    collection: str


class StoreAnswer(_WrittenAnswer):
    """The id of a stored memory."""

    created: Annotated[bool, Field(description="False if the same memory existed already.")]


class UpdateAnswer(_WrittenAnswer):
    """The id of a changed memory."""

    updated: Annotated[bool, Field(description="False if nothing had to be changed.")]


class DeleteAnswer(_WrittenAnswer):
    """The id of a deleted memory."""

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
    """A part that an import skipped."""

    where: str
    reason: str


class Pruned(TypedDict):
    """A memory that an import deleted."""

    id: int
    title: str


class ImportAnswer(TypedDict):
    """The counts and reports of an import."""

    collection: str
    created: int
    updated: int
    unchanged: int
    skipped: list[Skipped]
    pruned: NotRequired[list[Pruned]]
