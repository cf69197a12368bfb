"""The search API of SearXNG: https://docs.searxng.org/dev/search_api.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from standards_mcp import ApiError
from standards_mcp_web.answers import WebResult
from standards_mcp_web.texts import link, plain

from .base import Question, Reply, field_of, listed, objects, odd_answer

_SNIPPET: Final = 500
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

    def results(self, data: Any) -> Sequence[WebResult]:
        """Return the results. See `Provider`."""
        if (found := listed(field_of(data, "results"))) is None:
            raise odd_answer(self.name)
        return [_result(each, url) for each in objects(found) if (url := link(each.get("url")))]

    def refusal(self, reply: Reply) -> ApiError:
        """Return the error. See `Provider`; 403 is the answer where JSON is switched off."""
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


def _result(found: Mapping[str, Any], url: str) -> WebResult:
    engines = listed(found.get("engines")) or [None]
    return {
        "title": plain(found.get("title")) or url,
        "url": url,
        "snippet": plain(found.get("content"), _SNIPPET) or None,
        "profile": plain(engines[0]) or None,
        "price": None,
        "availability": None,
    }
