"""What every provider can do, and what their answers have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from standards_mcp import ApiError
from standards_mcp_web.answers import WebResult

LONGEST_TITLE: Final = 300
LONGEST_SNIPPET: Final = 500


@dataclass(frozen=True, slots=True)
class Question:
    """A request to a provider.

    Attributes:
        headers: They may hold a key.
    """

    url: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered.

    Attributes:
        headers: By their names in lower case.
        data: The JSON of the body; None where it is none.
    """

    status: int
    headers: Mapping[str, str]
    data: Any


class Provider(Protocol):
    """A search engine."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def question(self, query: str, count: int) -> Question:
        """Return the request for *count* results."""
        ...

    def results(self, data: Any) -> Iterable[WebResult]:
        """Return the results of a reply, in the provider's order.

        Raises:
            ApiError: It has another shape.
        """
        ...

    def refusal(self, reply: Reply, question: Question) -> ApiError:
        """Return the error for a status from 300 on that is not 429 and below 500.

        Its text has nothing of the question, also where the provider repeats it.
        """
        ...

    def wait(self, headers: Mapping[str, str]) -> float:
        """Return for how many seconds nothing may be asked; 0 if anything may."""
        ...


def listed(value: object) -> list[object] | None:
    """Return a list in JSON; None for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else None


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list in JSON, or one that stands alone; nothing of anything else."""
    items = listed(value) or [value]
    return [cast("Mapping[str, Any]", each) for each in items if isinstance(each, dict)]


def pages(value: object, provider: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list of results.

    Raises:
        ApiError: It is no list, or one of something else.
    """
    items = listed(value)
    found = objects(items)
    if items is None or (items and not found):
        raise odd_answer(provider)
    return found


def field_of(value: object, key: str) -> object:
    """Return what an object in JSON has under a key; None for what is no object."""
    return cast("Mapping[str, Any]", value).get(key) if isinstance(value, dict) else None


def odd_answer(provider: str) -> ApiError:
    """Return the error of an answer that cannot be read."""
    return ApiError(
        f"{provider} answered with something that is no list of results. Try again later; if it "
        "lasts, check the address in [plugins.web]."
    )
