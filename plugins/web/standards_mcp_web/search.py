"""A search with what it costs bounded: kept answers, one request for equal ones, and limits."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from cachetools import TTLCache

from .answers import WebAnswer, WebResult
from .errors import LimitedError
from .providers import Provider, open_provider
from .requests import ask
from .settings import WebSettings

NO_KEY: Final = (
    "Nothing was searched: there is no key for Brave. Set SEARCH_API_KEY, or name a SearXNG in "
    "[plugins.web]."
)
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
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
        self._limit = Limit(settings.rate_limit)
        self._blocked_until = 0.0

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
        if (wait := self._blocked_until - time.monotonic()) > 0:
            raise LimitedError(f"{provider.name} takes no more searches for now", wait)
        if wait := self._limit.wait():
            raise LimitedError(f"Web search is limited to {self._settings.rate_limit}", wait)
        question = provider.question(query, count)
        try:
            reply = await ask(await self._opened(), provider, question, self._settings.timeout)
        except LimitedError as error:
            self._block(error.retry_after or 0)
            raise
        self._block(provider.wait(reply.headers))
        return _answer(provider.results(reply.data)[:count], time.time())

    async def _opened(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                # It reads the certificates of all authorities, which takes a tenth of a second.
                self._client = await asyncio.to_thread(httpx2.AsyncClient, timeout=None)
            return self._client

    def _block(self, seconds: float) -> None:
        self._blocked_until = max(self._blocked_until, time.monotonic() + seconds)


class Limit:
    """Counts requests in a moving window.

    Args:
        rate: Such as ``10/minute``.
    """

    def __init__(self, rate: str) -> None:
        count, _, span = rate.partition("/")
        self._seconds = _SECONDS[span]
        self._times = deque[float](maxlen=int(count))

    def wait(self) -> float:
        """Return for how many seconds nothing more may be asked; 0 counts one request."""
        now = time.monotonic()
        is_full = len(self._times) == self._times.maxlen
        if is_full and (left := self._times[0] + self._seconds - now) > 0:
            return left
        self._times.append(now)
        return 0


@asynccontextmanager
async def searching(settings: WebSettings) -> AsyncGenerator[Search]:
    """Keep what searches know and have open while the context is."""
    search = Search(settings, open_provider(settings))
    try:
        yield search
    finally:
        await search.aclose()


def _answer(results: Sequence[WebResult], timestamp: float) -> WebAnswer:
    return {"tool": "web.search", "timestamp": timestamp, "results": list(results)}
