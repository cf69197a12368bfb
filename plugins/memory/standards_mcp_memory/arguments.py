"""The arguments of the tools, with their bounds."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StringConstraints

from .records import LARGEST_ID

MOST_RESULTS: Final = 100
USUAL_RESULTS: Final = 20
MOST_REFERENCES: Final = 50
LONGEST_NAME: Final = 100
SHORTEST_QUERY: Final = 2
LONGEST_QUERY: Final = 500


def check_name(name: str) -> str:
    """Return the name of a collection.

    Raises:
        ValueError: None may have this name.
    """
    if not 1 <= len(name) <= LONGEST_NAME:
        raise ValueError(f"the name of a collection has 1 to {LONGEST_NAME} characters")
    if name in (".", ".."):
        raise ValueError("the name of a collection is not . or ..")
    if any(each in "/\\" or unicodedata.category(each) in ("Cc", "Cs") for each in name):
        raise ValueError("the name of a collection has no /, no \\ and no control characters")
    return name


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is white space only")
    return text


def _no_surrogates(text: str) -> str:
    if any(unicodedata.category(each) == "Cs" for each in text):
        raise ValueError("it has half a character (a lone surrogate)")
    return text


Format: TypeAlias = Annotated[
    Literal["markdown", "json"], Field(description="How the text is written.")
]
CollectionName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^/\\\x00-\x1f\x7f]+$"),
    AfterValidator(check_name),
    Field(description="A collection: the role or the topic whose memories it holds."),
]
Query = Annotated[
    str,
    StringConstraints(min_length=SHORTEST_QUERY, max_length=LONGEST_QUERY),
    AfterValidator(_not_blank),
    AfterValidator(_no_surrogates),
    Field(description="What you want to know, as a question or a few words."),
]
Limit = Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS, description="The most previews.")]
DocumentId = Annotated[
    StrictInt, Field(ge=1, le=LARGEST_ID, description="The id of a memory, from memory_search.")
]
Title = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    AfterValidator(_not_blank),
    AfterValidator(_no_surrogates),
    Field(description="What the memory is about, in a line."),
]
Content = Annotated[
    str,
    StringConstraints(max_length=200_000),
    AfterValidator(_no_surrogates),
    Field(description="All that is to be remembered, in Markdown."),
]
PreviewText = Annotated[
    str,
    StringConstraints(max_length=2000),
    AfterValidator(_no_surrogates),
    Field(description="Two or three sentences by which a reader decides whether to fetch it."),
]
_Tag = Annotated[
    str, StringConstraints(pattern=r"^[^\s#,]+$", max_length=100), AfterValidator(_no_surrogates)
]
Tags = Annotated[list[_Tag], Field(max_length=50, description="Words without # and spaces.")]


class DocumentReference(BaseModel):
    """Where a memory is."""

    model_config = ConfigDict(extra="forbid")

    doc_id: DocumentId
    collection: CollectionName


References = Annotated[
    list[DocumentReference],
    Field(min_length=1, max_length=MOST_REFERENCES, description="The memories to fetch."),
]
