"""Arguments of the tools with their bounds, and the shapes of answers."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StringConstraints
from typing_extensions import TypedDict

from .records import LARGEST_ID

MOST_RESULTS: Final = 100
DEFAULT_RESULTS: Final = 20
MOST_REFERENCES: Final = 50
LONGEST_NAME: Final = 100
SHORTEST_QUERY: Final = 2
LONGEST_QUERY: Final = 500


def check_name(name: str) -> str:
    """Check the name of a collection, and return it.

    Raises:
        ValueError: The name is not valid.
    """
    if not 1 <= len(name) <= LONGEST_NAME:
        raise ValueError(f"the name of a collection has 1 to {LONGEST_NAME} characters")
    if name in (".", ".."):
        raise ValueError("the name of a collection is not . or ..")
    if any(char in "/\\" or unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise ValueError("the name of a collection has no /, no \\ and no control characters")
    return name


def check_no_surrogates(text: str) -> str:
    """Check a text for lone surrogates, which JSON can contain and UTF-8 cannot, and return it.

    Raises:
        ValueError: The text has a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has half a character (a lone surrogate)") from None
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is white space only")
    return text


Format: TypeAlias = Annotated[Literal["markdown", "json"], Field(description="Format of the text.")]
CollectionName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^/\\\x00-\x1f\x7f]+$"),
    AfterValidator(check_name),
    Field(description="A collection: the role or the topic whose memories it holds."),
]
Query = Annotated[
    str,
    StringConstraints(min_length=SHORTEST_QUERY, max_length=LONGEST_QUERY),
    AfterValidator(_check_not_blank),
    AfterValidator(check_no_surrogates),
    Field(description="A question or a few words."),
]
Limit = Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS, description="The most previews.")]
DocumentId = Annotated[
    StrictInt, Field(ge=1, le=LARGEST_ID, description="The id of a memory, from memory_search.")
]
Title = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    AfterValidator(_check_not_blank),
    AfterValidator(check_no_surrogates),
    Field(description="The subject of the memory, in a line."),
]
Content = Annotated[
    str,
    StringConstraints(max_length=200_000),
    AfterValidator(check_no_surrogates),
    Field(description="The whole text to remember, in Markdown."),
]
PreviewText = Annotated[
    str,
    StringConstraints(max_length=2000),
    AfterValidator(check_no_surrogates),
    Field(description="Two or three sentences that help a reader to decide on a fetch."),
]
_Tag = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s#,]+$", max_length=100),
    AfterValidator(check_no_surrogates),
]
Tags = Annotated[list[_Tag], Field(max_length=50, description="Words without # and spaces.")]


class DocumentReference(BaseModel):
    """The id of a memory with its collection."""

    model_config = ConfigDict(extra="forbid")

    doc_id: DocumentId
    collection: CollectionName


References = Annotated[
    list[DocumentReference],
    Field(min_length=1, max_length=MOST_REFERENCES, description="The memories to fetch."),
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
    pruned: NotRequired[
        Annotated[list[Pruned], Field(description="Memories whose file or heading is gone.")]
    ]
