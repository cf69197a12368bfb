"""One search: which products are asked for, which fulfil the filters, and in which order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from .answers import ProductResult
from .filters import Conditions, fulfils

if TYPE_CHECKING:
    from chromadb import Collection

LONGEST_TITLE: Final = 220
_LEAST: Final = 40
_MARGIN: Final = 4
_FIRST_LOOK: Final = 160
_BEST_RATING: Final = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A product that a store has found."""

    distance: float
    doc_id: str
    document: str
    fields: Mapping[str, Any]


def search(
    collection: Collection, vector: Sequence[float], conditions: Conditions, count: int
) -> list[ProductResult]:
    """Return at most *count* products, the nearest first; equally near ones by their id.

    The index is approximate and leaves equally near ones in any order, so more are asked for.
    """
    wanted = max(_MARGIN * count, _LEAST)
    if conditions == Conditions():
        found = _nearest(collection, vector, wanted)
    else:
        found = _filtered(collection, vector, conditions, wanted, count)
    found.sort(key=lambda each: (each.distance, each.doc_id))
    return [_result(each) for each in found[:count]]


def _filtered(
    collection: Collection, vector: Sequence[float], conditions: Conditions, wanted: int, count: int
) -> list[Found]:
    # Chroma collects all products that fulfil a filter before it searches, which takes long where
    # these are many. Then enough of them are among the nearest of all, which takes no time.
    nearest = _nearest(collection, vector, max(wanted, _FIRST_LOOK))
    found = [each for each in nearest if fulfils(conditions, each.fields, each.document)]
    return found if len(found) >= count else _nearest(collection, vector, wanted, conditions)


def _nearest(
    collection: Collection,
    vector: Sequence[float],
    count: int,
    conditions: Conditions = Conditions(),  # noqa: B008  - it cannot be changed
) -> list[Found]:
    answer = collection.query(
        query_embeddings=[vector],
        n_results=count,
        where=conditions.where,
        where_document=cast("Any", conditions.document),
        include=["documents", "metadatas", "distances"],
    )
    lists = (answer[key] for key in ("distances", "ids", "documents", "metadatas"))
    rows = zip(*((each or [[]])[0] for each in lists), strict=True)
    return [
        Found(distance, doc_id, document or "", fields or {})
        for distance, doc_id, document, fields in cast("Any", rows)
    ]


def _result(found: Found) -> ProductResult:
    fields = found.fields
    price, rating = _number(fields.get("price")), _number(fields.get("rating"))
    return {
        "doc_id": found.doc_id,
        "sku": _text(fields.get("sku")) or found.doc_id,
        "title": found.document[:LONGEST_TITLE],
        "price": price if price is not None and price > 0 else None,
        "rating": rating if rating is not None and 0 <= rating <= _BEST_RATING else None,
        "brand": _text(fields.get("brand")),
        "ingredients": _text(fields.get("ingredients")),
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
