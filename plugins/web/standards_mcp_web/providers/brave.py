"""Brave's Web Search API: https://api-dashboard.search.brave.com/app/documentation/web-search."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Final

from standards_mcp import ApiError
from standards_mcp_web.answers import WebResult
from standards_mcp_web.texts import link, plain, without

from .base import (
    LONGEST_SNIPPET,
    LONGEST_TITLE,
    Question,
    Reply,
    field_of,
    objects,
    odd_answer,
    pages,
)

_MAX_NAME: Final = 100
_MAX_PRICE: Final = 50
_MAX_CODE: Final = 100
_MAX_DETAIL: Final = 200
_MAX_DETAIL_READ: Final = 2000
_KEY_REFUSED_STATUSES: Final = (401, 403)
_UNPROCESSABLE: Final = 422


class Brave:
    """The Brave provider.

    Args:
        base_url: The address of the API, without the path.
        key: The subscription token.
    """

    name = "Brave"

    def __init__(self, base_url: str, key: str) -> None:
        self._url, self._key = f"{base_url}/res/v1/web/search", key

    def question(self, query: str, count: int) -> Question:
        """Return the request. See `Provider`."""
        headers = {
            "X-Subscription-Token": self._key,
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
        }
        return Question(self._url, {"q": query, "count": str(count)}, headers)

    def results(self, data: Any) -> Iterable[WebResult]:
        """Return the results. See `Provider`; an answer without results has no ``web``."""
        web = field_of(data, "web")
        results = field_of(web, "results")
        if _is_error(data) or not isinstance(data, dict):
            raise odd_answer(self.name)
        if web is None or (isinstance(web, dict) and results is None):
            return []
        listed = pages(results, self.name)
        return (_result(page, url) for page in listed if (url := link(page.get("url"))))

    def refusal(self, reply: Reply, question: Question) -> ApiError:
        """Return the error. See `Provider`."""
        error = field_of(reply.data, "error")
        about_token = "TOKEN" in plain(field_of(error, "code"), _MAX_CODE).upper()
        if reply.status in _KEY_REFUSED_STATUSES or (
            reply.status == _UNPROCESSABLE and about_token
        ):
            return ApiError(
                "Brave refuses the key. Set a valid one by SEARCH_API_KEY or [plugins.web] "
                "api_key.",
                status=reply.status,
            )
        detail = plain(field_of(error, "detail"), _MAX_DETAIL_READ)
        shown = without(detail, question.parameters["q"], self._key)[:_MAX_DETAIL]
        return ApiError(
            f"Brave answered {reply.status}: {shown or 'no reason was given'}", status=reply.status
        )

    def wait(self, headers: Mapping[str, str]) -> float:
        """Return the time until the longest used-up window resets.

        The headers are lists with one item for each window, such as a second and a month. A limit
        of 0 means unlimited, and a missing item counts as 1.
        """
        names = ("limit", "remaining", "reset")
        lists = (headers.get(f"x-ratelimit-{name}", "").split(",") for name in names)
        windows = [tuple(map(_number, items)) for items in zip_longest(*lists, fillvalue="")]
        return max((reset for limit, left, reset in windows if limit and left == 0), default=0)


def _is_error(data: object) -> bool:
    return bool(field_of(data, "error")) or field_of(data, "type") == "ErrorResponse"


def _result(page: Mapping[str, Any], url: str) -> WebResult:
    price, availability = _offer(page)
    return {
        "title": plain(page.get("title"), LONGEST_TITLE) or url,
        "url": url,
        "snippet": plain(page.get("description"), LONGEST_SNIPPET) or None,
        "profile": plain(field_of(page.get("profile"), "name"), _MAX_NAME) or None,
        "price": price,
        "availability": availability,
    }


def _offer(page: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the price and the availability of the first offer that has a price."""
    products = [*objects(page.get("product")), *objects(page.get("product_cluster"))]
    for offer in (offer for product in products for offer in objects(product.get("offers"))):
        if price := _price(offer):
            return price, _availability(offer) or None
    return next((price for product in products if (price := _price(product))), None), None


def _price(offer: Mapping[str, Any]) -> str:
    """Return a price with its currency, empty for a missing or zero price."""
    price = offer.get("price")
    if isinstance(price, bool) or not isinstance(price, str | int | float):
        return ""
    amount = plain(str(price), _MAX_PRICE + 1)
    is_above_0 = any(unicodedata.decimal(character, 0) for character in amount)
    if not is_above_0 or amount.startswith("-") or len(amount) > _MAX_PRICE:
        return ""
    return f"{amount} {plain(offer.get('priceCurrency'), _MAX_PRICE)}".strip()


def _availability(offer: Mapping[str, Any]) -> str:
    address = re.split("[?#]", plain(offer.get("availability"), _MAX_NAME))[0]
    return address.rstrip("/").rpartition("/")[2]


def _number(text: str) -> int:
    """Parse a number of a header. Other text gives 1, which blocks requests only briefly."""
    return int(text) if re.fullmatch(r"\s*\d{1,9}\s*", text) else 1
