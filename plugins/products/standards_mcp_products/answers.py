"""What the tool answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict


class ProductResult(TypedDict):
    """One product. What is not known is null or empty, never 0."""

    doc_id: str
    sku: str
    title: Annotated[str, Field(description="The beginning of its description.")]
    price: Annotated[float | None, Field(description="In US dollars; null: not known.")]
    rating: Annotated[float | None, Field(description="0 to 5; null: not known.")]
    brand: str
    ingredients: str


class SearchAnswer(TypedDict):
    """The products that fit, the best first."""

    tool: Literal["rag.search"]
    timestamp: Annotated[float, Field(description="Seconds since the epoch.")]
    results: list[ProductResult]
