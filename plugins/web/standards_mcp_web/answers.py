"""The answer of the tool."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict


class WebResult(TypedDict):
    """One page, with untrusted texts."""

    title: str
    url: str
    snippet: str | None
    profile: Annotated[str | None, Field(description="The name of the site.")]
    price: Annotated[str | None, Field(description="The price of an offer on the page.")]
    availability: Annotated[
        str | None, Field(description="The availability of that offer, such as InStock.")
    ]


class WebAnswer(TypedDict):
    """The pages, in the provider's order."""

    tool: Literal["web.search"]
    timestamp: Annotated[
        float, Field(description="Time of the provider's answer, in seconds since the epoch.")
    ]
    results: list[WebResult]
    notice: NotRequired[Annotated[str, Field(description="The reason why no search was made.")]]
