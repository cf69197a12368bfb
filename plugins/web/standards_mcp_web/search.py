"""A search with what it costs bounded: kept answers, one request for equal ones, and limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

import httpx2
from cachetools import TTLCache

from standards_mcp import may_use_proxy

from .answers import WebAnswer, WebResult
from .limits import Limits
from .providers import Provider, open_provider
from .requests import ask
from .settings import WebSettings

NO_KEY: Final = (
    "Nothing was searched: there is no key for Brave. Set SEARCH_API_KEY, or name a SearXNG in "
    "[plugins.web]."
)
_Key = tuple[str, int]


class Search:
    """Searches the web.

    Args:
        provider: Whom it asks; None where the key is missing.
    """

    def __init__(self, settings: WebSettings, provider: Provider | None) -> None:
        self._settings, self._provider = settings, provider
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._kept: TTLCache[_Key, WebAnswer] = TTLCache(
            settings.cache_size, settings.cache_ttl, time.monotonic
        )
        self._running: dict[_Key, asyncio.Task[WebAnswer]] = {}
        self._limits = Limits(settings.rate_limit)

    async def search(self, query: str, count: int) -> WebAnswer:
        """Return at most *count* pages that answer a query, whose white space is single spaces.

        Raises:
            ToolError: The provider cannot or must not be asked, or its answer cannot be read.
        """
        if self._provider is None:
            return {**_answer([], time.time()), "notice": NO_KEY}
        key = (query, count)
        if (kept := self._kept.get(key)) is not None:
            return kept
        if (running := self._running.get(key)) is None:
            # A task of its own: a caller who leaves must not end the search of the others.
            running = asyncio.create_task(self._asked(self._provider, query, count))
            self._running[key] = running
            running.add_done_callback(lambda task: self._done(key, task))
        return await asyncio.shield(running)

    async def aclose(self) -> None:
        """Give up the searches that run, and close the connections."""
        running = list(self._running.values())
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._client:
            await self._client.aclose()

    def _done(self, key: _Key, task: asyncio.Task[WebAnswer]) -> None:
        del self._running[key]
        # An error that nobody waits for any more is read, since asyncio would warn of it.
        if not task.cancelled() and task.exception() is None:
            self._kept[key] = task.result()

    async def _asked(self, provider: Provider, query: str, count: int) -> WebAnswer:
        question = provider.question(query, count)
        client = await self._opened(question.url)
        reply = await ask(client, provider, question, self._limits, self._settings.timeout)
        return _answer(islice(provider.results(reply.data), count), time.time())

    async def _opened(self, url: str) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                # It reads the certificates of all authorities, which takes a tenth of a second.
                self._client = await asyncio.to_thread(
                    httpx2.AsyncClient, timeout=None, trust_env=may_use_proxy(url)
                )
            return self._client


@asynccontextmanager
async def searching(settings: WebSettings) -> AsyncGenerator[Search]:
    """Keep what searches know and have open while the context is."""
    search = Search(settings, open_provider(settings))
    try:
        yield search
    finally:
        await search.aclose()


def _answer(results: Iterable[WebResult], timestamp: float) -> WebAnswer:
    return {"tool": "web.search", "timestamp": timestamp, "results": list(results)}
