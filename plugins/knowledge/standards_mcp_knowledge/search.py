"""From the rows and distances of an index to results: scores, their order, attribution."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from .metadata import Document, id_of, path_of, snippet_of, title_of

Metric: TypeAlias = Literal["ip", "l2"]
"""What an index measures: inner products, or squared distances."""


class Hit(TypedDict):
    """A passage that answers, with the file that it is from."""

    id: str
    score: Annotated[
        float, Field(description="1 for the same meaning, 0 and less for none in common.")
    ]
    title: str
    path: Annotated[str, Field(description="What to cite.")]
    snippet: str


def score_of(distance: float, metric: Metric) -> float:
    """Return the score of a row: for normalised vectors the cosine, by either metric."""
    return round(distance if metric == "ip" else 1 - distance / 2, 6)


def hits(
    found: Iterable[tuple[int, float]],
    metric: Metric,
    documents: Sequence[Document],
    dataset: str,
) -> list[Hit]:
    """Return the results of what an index found, the best first.

    Args:
        found: Rows with FAISS's distances. It fills up with rows below 0.
    """
    scored = [
        (score_of(distance, metric), row)
        for row, distance in found
        if 0 <= row < len(documents) and math.isfinite(distance)
    ]
    scored.sort(key=lambda each: (-each[0], each[1]))
    return [_hit(documents[row], row, score, dataset) for score, row in scored]


def _hit(document: Document, row: int, score: float, dataset: str) -> Hit:
    return {
        "id": id_of(document, row, dataset),
        "score": score,
        "title": title_of(document, row),
        "path": path_of(document, row, dataset),
        "snippet": snippet_of(document),
    }
