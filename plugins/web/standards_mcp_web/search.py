"""Web searches with a cache, a rate limit, and one request for concurrent equal searches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from itertools import islice
from typing import Final

import httpx2
from cachetools import TTLCache

from standards_mcp import may_use_proxy

from .answers import WebAnswer, WebResult
from .limits import Limits
from .providers import Provider
from .requests import ask
from .settings import WebSettings

NO_KEY: Final = (
    "No search was made: SEARCH_API_KEY is not set. Set it to a key for Brave, or configure a "
    "SearXNG in [plugins.web]."
)
_Key = tuple[str, int]


class Search:
    """Search the web by one provider.

    Args:
        provider: The search engine, or None if its key is missing.
    """

    def __init__(self, settings: WebSettings, provider: Provider | None) -> None:
        self._settings, self._provider = settings, provider
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()
        # Not the host's cache: its size limit is shared by all tools, and it treats queries as
        # different that differ only in spaces.
        self._cache: TTLCache[_Key, WebAnswer] = TTLCache(
            settings.cache_size, settings.cache_ttl, time.monotonic
        )
        self._running: dict[_Key, asyncio.Task[WebAnswer]] = {}
        self._limits = Limits(settings.rate_limit)

    async def search(self, query: str, count: int) -> WebAnswer:
        """Return at most *count* pages for a query with normalised white space.

        Raises:
            ToolError: The request is not allowed or fails, or the answer is unreadable.
        """
        if self._provider is None:
            return {**_answer([], time.time()), "notice": NO_KEY}
        key = (query, count)
        if (cached := self._cache.get(key)) is not None:
            return cached
        if (running := self._running.get(key)) is None:
            # A separate task: a caller that leaves must not end the search of other callers.
            running = asyncio.create_task(self._request(self._provider, query, count))
            self._running[key] = running
            running.add_done_callback(lambda task: self._finish(key, task))
        return await asyncio.shield(running)

    async def aclose(self) -> None:
        """Cancel running searches and close the connections."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._client:
            await self._client.aclose()

    def _finish(self, key: _Key, task: asyncio.Task[WebAnswer]) -> None:
        del self._running[key]
        # Read the exception: asyncio warns of unread ones, even if all callers have left.
        if not task.cancelled() and task.exception() is None:
            self._cache[key] = task.result()

    async def _request(self, provider: Provider, query: str, count: int) -> WebAnswer:
        question = provider.question(query, count)
        client = await self._open_client(question.url)
        reply = await ask(client, provider, question, self._limits, self._settings.timeout)
        return _answer(islice(provider.results(reply.data), count), time.time())

    async def _open_client(self, url: str) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                # In a thread: reading the certificate authorities takes a tenth of a second.
                self._client = await asyncio.to_thread(
                    httpx2.AsyncClient, timeout=None, trust_env=may_use_proxy(url)
                )
            return self._client


def _answer(results: Iterable[WebResult], timestamp: float) -> WebAnswer:
    return {"tool": "web.search", "timestamp": timestamp, "results": list(results)}
