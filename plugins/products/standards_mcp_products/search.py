"""Search a collection: select candidates, filter and sort them, and build the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .filters import Conditions, fulfils
from .store import Store


class ProductResult(TypedDict):
    """One product. Unknown values are null or empty, never 0."""

    doc_id: str
    sku: str
    title: Annotated[str, Field(description="The beginning of its description.")]
    price: Annotated[float | None, Field(description="In US dollars; null if unknown.")]
    rating: Annotated[float | None, Field(description="0 to 5; null if unknown.")]
    brand: str
    ingredients: str


class SearchAnswer(TypedDict):
    """Matching products, the best first."""

    tool: Literal["rag.search"]
    timestamp: Annotated[float, Field(description="Seconds since the epoch.")]
    results: list[ProductResult]


if TYPE_CHECKING:
    from chromadb import Collection

MAX_TITLE_LENGTH: Final = 220
_MIN_CANDIDATES: Final = 40
_CANDIDATES_PER_RESULT: Final = 4
_MIN_TO_FILTER: Final = 160
_MAX_RATING: Final = 5


def search(
    store: Store, model: str, vector: Sequence[float], conditions: Conditions, count: int
) -> SearchAnswer:
    """Return at most *count* products, sorted by distance and then by id.

    Args:
        model: The name of the encoder that made *vector*.

    Raises:
        ToolError: The store fails, or has vectors of another model.
    """
    results = store.ask(lambda collection: _results(collection, vector, conditions, count), model)
    return {"tool": "rag.search", "timestamp": time.time(), "results": results}


def _results(
    collection: Collection, vector: Sequence[float], conditions: Conditions, count: int
) -> list[ProductResult]:
    def nearest(number: int, *include: str, **filters: Any) -> Iterator[tuple[Any, ...]]:
        """Yield distance and id of the nearest products, and the values to include."""
        names: Any = ["distances", *include]
        answer: Any = collection.query(
            query_embeddings=[vector], n_results=number, include=names, **filters
        )
        return zip(*(answer[name][0] for name in ("distances", "ids", *include)), strict=True)

    # The index is approximate and returns ties in any order, so more candidates are needed.
    candidate_count = max(_CANDIDATES_PER_RESULT * count, _MIN_CANDIDATES)
    candidates: list[tuple[float, str]] = []
    # Chroma collects all products that match a filter before it searches: 150 ms for 50,000
    # products, against 1 ms without a filter. So the first search has no filter: if many products
    # match, enough of them are among the nearest.
    if conditions != Conditions():
        rows = nearest(max(candidate_count, _MIN_TO_FILTER), "metadatas", "documents")
        candidates = [
            (distance, doc_id)
            for distance, doc_id, fields, document in rows
            if fulfils(conditions, fields or {}, document or "")
        ]
    if len(candidates) < count:
        # Without the values, because reading all candidates would take longer than the search.
        where = {"where": conditions.where, "where_document": conditions.document}
        candidates = [(distance, doc_id) for distance, doc_id in nearest(candidate_count, **where)]
    ids = [doc_id for _, doc_id in sorted(candidates)[:count]]
    if not ids:
        return []
    stored = collection.get(ids=ids, include=["documents", "metadatas"])
    found = zip(stored["ids"], stored["documents"] or (), stored["metadatas"] or (), strict=True)
    products = {doc_id: _result(doc_id, text or "", fields or {}) for doc_id, text, fields in found}
    return [products[doc_id] for doc_id in ids if doc_id in products]


def _result(doc_id: str, document: str, fields: Mapping[str, Any]) -> ProductResult:
    price, rating = _number(fields.get("price")), _number(fields.get("rating"))
    return {
        "doc_id": doc_id,
        "sku": _text(fields.get("sku")) or doc_id,
        "title": document[:MAX_TITLE_LENGTH],
        "price": price if price is not None and price > 0 else None,
        "rating": rating if rating is not None and 0 <= rating <= _MAX_RATING else None,
        "brand": _text(fields.get("brand")),
        "ingredients": _text(fields.get("ingredients")),
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
