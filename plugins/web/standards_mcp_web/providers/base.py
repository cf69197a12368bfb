"""The protocol of providers, and helpers to parse their answers."""

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
        headers: The headers, which may contain a key.
    """

    url: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a provider.

    Attributes:
        headers: Headers by lowercase name.
        data: The parsed JSON of the body, None for other content.
    """

    status: int
    headers: Mapping[str, str]
    data: Any


class Provider(Protocol):
    """A search engine."""

    @property
    def name(self) -> str:
        """The name for messages."""
        ...

    def question(self, query: str, count: int) -> Question:
        """Return the request for *count* results."""
        ...

    def results(self, data: Any) -> Iterable[WebResult]:
        """Return the results of a reply, in the provider's order.

        Raises:
            ApiError: The reply does not have the expected structure.
        """
        ...

    def refusal(self, reply: Reply, question: Question) -> ApiError:
        """Return the error for a status from 300 to 499 other than 429.

        Its text must not contain the query or key, even if the provider repeats them.
        """
        ...

    def wait(self, headers: Mapping[str, str]) -> float:
        """Return the seconds until the next allowed request; 0 if one is allowed now."""
        ...


def listed(value: object) -> list[object] | None:
    """Return a JSON list, None for other values."""
    return cast("list[object]", value) if isinstance(value, list) else None


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list, or a single object as a list; else an empty list."""
    items = listed(value) or [value]
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def pages(value: object, provider: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list of results.

    Raises:
        ApiError: The value is not a list of objects.
    """
    items = listed(value)
    results = objects(items)
    if items is None or (items and not results):
        raise odd_answer(provider)
    return results


def field_of(value: object, key: str) -> object:
    """Return the value of a key of a JSON object, None for other values."""
    return cast("Mapping[str, Any]", value).get(key) if isinstance(value, dict) else None


def odd_answer(provider: str) -> ApiError:
    """Return the error for an unreadable answer."""
    return ApiError(
        f"{provider} did not answer with a list of results. Try again later; if the error "
        "persists, check the address in [plugins.web]."
    )
