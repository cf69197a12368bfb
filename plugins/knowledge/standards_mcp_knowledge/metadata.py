"""The documents of a dataset: row i of the list belongs to vector i."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from .errors import DatasetError

SNIPPET: Final = 200
"""Characters of a text that a result shows."""


class Document(TypedDict, total=False):
    """One document, or a chunk of one. All of it is optional."""

    id: str | None
    title: str | None
    path: str | None
    content: str | None
    snippet: str | None
    chunk: int | None
    chunk_total: int | None


class Metadata(BaseModel):
    """The documents, and the model that made their vectors, if it is named.

    What else builders write, such as counts and dates, is for people.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    documents: Sequence[Document]
    model: str | None = None


_LIST = TypeAdapter(list[Document])


def read_metadata(path: Path) -> Metadata:
    """Read the documents of a dataset.

    Raises:
        DatasetError: The file cannot be read, or has another shape.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DatasetError(
            "metadata", f"Metadata file cannot be read: {path}: {error.strerror}"
        ) from error
    try:
        if text.lstrip()[:1] == b"[":
            return Metadata.model_construct(documents=_LIST.validate_json(text))
        return Metadata.model_validate_json(text)
    except ValidationError as error:
        raise DatasetError("metadata", f"Metadata is not valid: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    found = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}" if where else found["msg"]


def title_of(document: Document, row: int) -> str:
    """Return what people read as the document's name."""
    return document.get("title") or document.get("path") or f"Document {row}"


def id_of(document: Document, row: int, dataset: str) -> str:
    """Return the id of a document, which rows without one get from their dataset."""
    return document.get("id") or f"{dataset}-{row + 1}"


def path_of(document: Document, row: int, dataset: str) -> str:
    """Return what a document is cited by; it is never empty."""
    return document.get("path") or id_of(document, row, dataset)


def snippet_of(document: Document) -> str:
    """Return the text that a result shows."""
    return document.get("snippet") or (document.get("content") or "")[:SNIPPET]
