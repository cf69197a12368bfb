"""The search API of SearXNG: https://docs.searxng.org/dev/search_api.html."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from standards_mcp import ApiError
from standards_mcp_web.answers import WebResult
from standards_mcp_web.texts import link, plain

from .base import LONGEST_SNIPPET, LONGEST_TITLE, Question, Reply, field_of, listed, pages

_MAX_ENGINE_NAME: Final = 50
_MOST_ENGINES: Final = 5
_FORBIDDEN: Final = 403


class Searxng:
    """The SearXNG provider.

    Args:
        url: The address of the server.
    """

    name = "SearXNG"

    def __init__(self, url: str) -> None:
        self._url, self._host = f"{url}/search", urlsplit(url).hostname

    def question(self, query: str, count: int) -> Question:
        """Return the request. See `Provider`; SearXNG has no parameter for the count."""
        del count
        parameters = {"q": query, "format": "json"}
        return Question(self._url, parameters, {"Accept": "application/json"})

    def results(self, data: Any) -> Iterable[WebResult]:
        """Return the results. See `Provider`; an empty list is an error if engines failed."""
        results = pages(field_of(data, "results"), self.name)
        failures = listed(field_of(data, "unresponsive_engines"))
        if failures and not results:
            raise ApiError(
                f"SearXNG has no results, because its engines did not answer{_names(failures)}. "
                "Try again later; if the error persists, enable other engines in its settings.yml."
            )
        return (_result(page, url) for page in results if (url := link(page.get("url"))))

    def refusal(self, reply: Reply, question: Question) -> ApiError:
        """Return the error. See `Provider`; 403 means that JSON is disabled."""
        del question
        advice = (
            "add json to search.formats in its settings.yml"
            if reply.status == _FORBIDDEN
            else "check [plugins.web] searxng_url"
        )
        return ApiError(
            f"The SearXNG at {self._host} answered {reply.status}: {advice}.", status=reply.status
        )

    def wait(self, headers: Mapping[str, str]) -> float:
        """Return 0: SearXNG has no header for limits."""
        del headers
        return 0


def _names(engines: list[object]) -> str:
    """Return the names of engines as a part of a sentence. SearXNG lists each with a reason."""
    names = (
        plain((listed(engine) or [engine])[0], _MAX_ENGINE_NAME)
        for engine in engines[:_MOST_ENGINES]
    )
    listed_names = ", ".join(filter(None, names))
    return f": {listed_names}" if listed_names else ""


def _result(page: Mapping[str, Any], url: str) -> WebResult:
    engines = listed(page.get("engines")) or [None]
    return {
        "title": plain(page.get("title"), LONGEST_TITLE) or url,
        "url": url,
        "snippet": plain(page.get("content"), LONGEST_SNIPPET) or None,
        "profile": plain(engines[0], _MAX_ENGINE_NAME) or None,
        "price": None,
        "availability": None,
    }
