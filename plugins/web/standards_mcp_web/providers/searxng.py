"""The search API of SearXNG: https://docs.searxng.org/dev/search_api.html."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from standards_mcp import ApiError
from standards_mcp_web.answers import WebResult
from standards_mcp_web.texts import link, plain

from .base import LONGEST_SNIPPET, LONGEST_TITLE, Question, Reply, field_of, listed, pages

_ENGINE: Final = 50
_MOST_ENGINES: Final = 5
_FORBIDDEN: Final = 403


class Searxng:
    """Asks a SearXNG.

    Args:
        url: Its address.
    """

    name = "SearXNG"

    def __init__(self, url: str) -> None:
        self._url, self._host = f"{url}/search", urlsplit(url).hostname

    def question(self, query: str, count: int) -> Question:
        """Return the request. See `Provider`; a SearXNG says itself how many results it has."""
        del count
        parameters = {"q": query, "format": "json"}
        return Question(self._url, parameters, {"Accept": "application/json"})

    def results(self, data: Any) -> Iterable[WebResult]:
        """Return the results. See `Provider`; none are an error where engines did not answer."""
        found = pages(field_of(data, "results"), self.name)
        silent = listed(field_of(data, "unresponsive_engines"))
        if silent and not found:
            raise ApiError(
                f"SearXNG has no results, since search engines did not answer it{_names(silent)}. "
                "Try again later; if it lasts, let other engines be used in its settings.yml."
            )
        return (_result(each, url) for each in found if (url := link(each.get("url"))))

    def refusal(self, reply: Reply, question: Question) -> ApiError:
        """Return the error. See `Provider`; 403 is the answer where JSON is switched off."""
        del question
        advice = (
            "let search.formats in its settings.yml have json"
            if reply.status == _FORBIDDEN
            else "check [plugins.web] searxng_url"
        )
        return ApiError(
            f"The SearXNG at {self._host} answered {reply.status}: {advice}.", status=reply.status
        )

    def wait(self, headers: Mapping[str, str]) -> float:
        """Return 0: it does not tell of limits."""
        del headers
        return 0


def _names(engines: list[object]) -> str:
    """Return the names of engines, which come each with a reason, as a part of a sentence."""
    names = (plain((listed(each) or [each])[0], _ENGINE) for each in engines[:_MOST_ENGINES])
    told = ", ".join(filter(None, names))
    return f": {told}" if told else ""


def _result(found: Mapping[str, Any], url: str) -> WebResult:
    engines = listed(found.get("engines")) or [None]
    return {
        "title": plain(found.get("title"), LONGEST_TITLE) or url,
        "url": url,
        "snippet": plain(found.get("content"), LONGEST_SNIPPET) or None,
        "profile": plain(engines[0], _ENGINE) or None,
        "price": None,
        "availability": None,
    }
