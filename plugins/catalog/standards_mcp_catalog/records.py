"""The record of one standard, in the same form in every store.

The fields have the names of the Pinecone record that the two standards tools have always returned,
so that a record moves between stores unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

_T = TypeVar("_T")
_CONTENT_LINE = re.compile(r"Depth \d+(?: \([^)]*\))?: ")


class StandardRecord(BaseModel):
    """One educational standard, or a heading above standards.

    Fields that are not declared here are kept and written back unchanged.

    Attributes:
        id: The standard's GUID (``_id`` in JSON).
        content: One line for each ancestor from the root, then the record itself, each
            ``Depth N (notation): description``.
        education_levels: ``Pre-K``, ``K``, ``01`` to ``12`` and the levels beyond school.
        ancestor_ids: The root first, the parent last.
        sibling_count: How many other children the parent has.
        description: The record's own text, without its ancestors.
        text_status: ``official`` or ``paraphrase``.
    """

    # Built with the first record, since a server starts without any.
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)

    id: str = Field(alias="_id", min_length=1)
    content: str
    standard_set_id: str
    standard_set_title: str
    subject: str
    normalized_subject: str | None = None
    education_levels: tuple[str, ...] = ()
    document_id: str | None = None
    document_valid: str | None = None
    publication_status: str | None = None
    jurisdiction_id: str
    jurisdiction_title: str
    asn_identifier: str | None = None
    statement_notation: str | None = None
    alt_statement_notations: tuple[str, ...] = ()
    statement_label: str | None = None
    depth: int = 0
    is_leaf: bool = True
    is_root: bool = True
    parent_id: str | None = None
    root_id: str | None = None
    ancestor_ids: tuple[str, ...] = ()
    child_ids: tuple[str, ...] = ()
    sibling_count: int = 0
    description: str = ""
    source_url: str | None = None
    license: str | None = None
    text_status: str | None = None

    @model_validator(mode="after")
    def _take_description_from_content(self) -> Self:
        if not self.description and self.content:
            _, newline, own = self.content.rpartition("\nDepth ")
            last = f"Depth {own}" if newline else own
            object.__setattr__(self, "description", _CONTENT_LINE.sub("", last, count=1))
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* (with ``_id``) describes.

        Raises:
            pydantic.ValidationError: A field is missing or has a wrong type.
        """
        return cls.model_validate(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-ready data with ``_id``, without empty fields (None)."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of at most *size*; take no more of them than it yields."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
