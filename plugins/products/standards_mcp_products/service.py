"""The encoder and the store together, as the tool and the commands use them."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from standards_mcp import TimedOutError

from .answers import SearchAnswer
from .encoders import Encoder
from .filters import read_filters
from .search import search
from .settings import ProductsSettings
from .store import ActiveFile, Place, Store, place_of

T = TypeVar("T")
_THREADS: Final = 8
_MOST_THREADS: Final = 2 * _THREADS
"""With those whose question has taken too long, and which nobody waits for any more."""
_PATIENCE: Final = 3.0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Some products: where they are, and what they are called there."""

    place: Place
    file: ActiveFile
    name: str

    def store(self) -> Store:
        """Return what asks them."""
        return Store(self.place, self.file, self.name)


def catalogue_of(settings: ProductsSettings, state_dir: Path) -> Catalogue:
    """Return the products that the settings name."""
    place = place_of(settings, state_dir)
    file = ActiveFile(state_dir, place.key, settings.collection)
    return Catalogue(place, file, settings.collection)


class Service:
    """Answers searches. All that takes long runs in threads.

    Args:
        seconds: For one question to the store.
    """

    def __init__(self, catalogue: Catalogue, encoder: Encoder, seconds: float) -> None:
        self.catalogue, self._encoder, self._seconds = catalogue, encoder, seconds
        self._store = catalogue.store()
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._free = threading.Semaphore(_MOST_THREADS)

    async def search(
        self, query: str, count: int, filters: Mapping[str, Any] | None
    ) -> SearchAnswer:
        """Return the products that answer a query.

        Raises:
            ToolError: There are none, for a reason that its message names.
        """
        conditions = read_filters(filters)
        model, vector = await anyio.to_thread.run_sync(self._encoded, query, limiter=self._threads)

        def ask() -> SearchAnswer:
            found = self._store.ask(lambda all_: search(all_, vector, conditions, count), model)
            return {"tool": "rag.search", "timestamp": time.time(), "results": found}

        return await self._in_time(ask)

    async def count(self) -> int:
        """Return how many products there are.

        Raises:
            ToolError: They cannot be read.
        """
        return await self._in_time(lambda: self._store.ask(lambda all_: all_.count()))

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _encoded(self, query: str) -> tuple[str, list[float]]:
        import_module("chromadb")  # takes seconds, which are not a part of the time to answer
        return self._encoder.name, self._encoder.encode([query])[0].tolist()

    async def _in_time(self, question: Callable[[], T]) -> T:
        def answer() -> T:
            # A thread that nobody waits for counts until it ends, unlike for the limiter.
            if not self._free.acquire(blocking=False):
                raise TimeoutError
            try:
                return question()
            finally:
                self._free.release()

        try:
            with anyio.fail_after(self._seconds):
                return await anyio.to_thread.run_sync(
                    answer, abandon_on_cancel=True, limiter=self._threads
                )
        except TimeoutError:
            raise TimedOutError(
                f"The products in {self.catalogue.place.shown} did not answer within "
                f"{self._seconds:g} s. Try again, or set [plugins.products] timeout."
            ) from None


@asynccontextmanager
async def serving(settings: ProductsSettings, catalogue: Catalogue) -> AsyncGenerator[Service]:
    """Keep the encoder and the store open while the context is."""
    encoder = Encoder(settings.model, settings.embedding_api_key)
    service = Service(catalogue, encoder, settings.timeout)
    try:
        yield service
    finally:
        # A server that does not answer is not waited for here, but the process ends only when the
        # request that is under way does: after the timeout of the settings.
        with anyio.move_on_after(_PATIENCE, shield=True):
            await anyio.to_thread.run_sync(service.close, abandon_on_cancel=True)
