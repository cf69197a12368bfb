"""Documents of a dataset and results of a search; row i of the documents has vector i."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from .manifests import DatasetError

SNIPPET_LENGTH: Final = 200
"""Number of characters of a default snippet."""


class Passage(TypedDict, total=False):
    """A document or a chunk of it. All fields are optional."""

    id: str | None
    title: str | None
    path: str | None
    content: str | None
    snippet: str | None
    chunk: int | None
    chunk_total: int | None


class Metadata(BaseModel):
    """The documents of a dataset, and the model of their vectors if the file names it.

    Further keys of builders, such as counts and dates, are ignored.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    documents: Sequence[Passage]
    model: str | None = None


_DOCUMENT_LIST = TypeAdapter(list[Passage])


def read_metadata(path: Path) -> Metadata:
    """Read the documents of a dataset.

    Raises:
        DatasetError: The file cannot be read, or its format is invalid.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DatasetError(
            "metadata", f"Metadata file cannot be read: {path}: {error.strerror}"
        ) from error
    try:
        if text.lstrip()[:1] == b"[":
            return Metadata.model_construct(documents=_DOCUMENT_LIST.validate_json(text))
        return Metadata.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        parts = [".".join(map(str, first["loc"])), first["msg"]]
        reason = f"Metadata is not valid: {': '.join(filter(None, parts))}"
        raise DatasetError("metadata", reason) from error


def path_of(document: Passage, row: int, dataset: str) -> str:
    """Return the path to cite. Without a path, return the document's id."""
    return document.get("path") or _id_of(document, row, dataset)


def _id_of(document: Passage, row: int, dataset: str) -> str:
    return document.get("id") or f"{dataset}-{row + 1}"


Metric: TypeAlias = Literal["ip", "l2"]
"""The metric of an index: inner product or squared L2 distance."""


class Hit(TypedDict):
    """A passage in the results, with its file."""

    id: str
    score: Annotated[
        float, Field(description="1 for the same meaning, 0 or less for unrelated texts.")
    ]
    title: str
    path: Annotated[str, Field(description="The path to cite.")]
    snippet: str


def score_of(distance: float, metric: Metric) -> float:
    """Return the score of a row: the cosine, if the vectors are normalised."""
    return round(distance if metric == "ip" else 1 - distance / 2, 6)


def hits(
    rows: Iterable[tuple[int, float]],
    metric: Metric,
    documents: Sequence[Passage],
    dataset: str,
) -> list[Hit]:
    """Return the results for the rows that an index returned, best first.

    Args:
        rows: Row numbers with FAISS's distances. FAISS pads missing results with negative rows.
    """
    scored = [
        (score_of(distance, metric), row)
        for row, distance in rows
        if 0 <= row < len(documents) and math.isfinite(distance)
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    return [_hit(documents[row], row, score, dataset) for score, row in scored]


def _hit(document: Passage, row: int, score: float, dataset: str) -> Hit:
    return {
        "id": _id_of(document, row, dataset),
        "score": score,
        "title": document.get("title") or document.get("path") or f"Document {row}",
        "path": path_of(document, row, dataset),
        "snippet": document.get("snippet") or (document.get("content") or "")[:SNIPPET_LENGTH],
    }
