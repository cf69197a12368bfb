"""What the tool answers."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class WebResult(TypedDict):
    """One page. Its texts are those of strangers."""

    title: str
    url: str
    snippet: str | None
    profile: Annotated[str | None, Field(description="The name of the site.")]
    price: Annotated[str | None, Field(description="As an offer on the page states it.")]
    availability: Annotated[str | None, Field(description="Of that offer, such as InStock.")]


class WebAnswer(TypedDict):
    """The pages that answer, in the provider's order."""

    tool: Literal["web.search"]
    timestamp: Annotated[
        float, Field(description="When the provider answered, in seconds since the epoch.")
    ]
    results: list[WebResult]
    notice: NotRequired[Annotated[str, Field(description="Why nothing was searched.")]]
