"""Search service for the tool and the commands: encoder, store, time limit and status."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from typing_extensions import TypedDict

from standards_mcp import TimedOutError

from .chroma import NotBuiltError, Place, place_of
from .encoders import Encoder
from .filters import read_filters
from .search import SearchAnswer, search
from .settings import ProductsSettings
from .store import ActiveFile, Store

T = TypeVar("T")
_THREADS: Final = 8
_MOST_THREADS: Final = 2 * _THREADS
"""The limit including abandoned threads, which exceeded the time limit."""
_PATIENCE: Final = 3.0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The configured products: their store and name."""

    place: Place
    file: ActiveFile
    name: str

    def store(self) -> Store:
        """Return a store for searches."""
        return Store(self.place, self.file, self.name)


def catalogue_of(settings: ProductsSettings, state_dir: Path) -> Catalogue:
    """Return the configured products."""
    place = place_of(settings, state_dir)
    file = ActiveFile(state_dir, place.key, settings.collection)
    return Catalogue(place, file, settings.collection)


class Service:
    """Answer searches. Slow work runs in threads.

    Args:
        seconds: Time limit for one question to the store.
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
            ToolError: The search fails.
        """
        conditions = read_filters(filters)
        model, vector = await anyio.to_thread.run_sync(self._encoded, query, limiter=self._threads)

        def ask() -> SearchAnswer:
            results = self._store.ask(lambda all_: search(all_, vector, conditions, count), model)
            return {"tool": "rag.search", "timestamp": time.time(), "results": results}

        return await self._in_time(ask)

    async def count(self) -> int:
        """Return the number of products.

        Raises:
            ToolError: The store cannot be read.
        """
        return await self._in_time(lambda: self._store.ask(lambda all_: all_.count()))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _encoded(self, query: str) -> tuple[str, list[float]]:
        import_module("chromadb")  # takes seconds, which must not count as search time
        return self._encoder.name, self._encoder.encode([query])[0].tolist()

    async def _in_time(self, question: Callable[[], T]) -> T:
        def answer() -> T:
            # An abandoned thread counts until it ends, unlike in the limiter.
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
    """Open the encoder and the store for the duration of the context."""
    encoder = Encoder(settings.model, settings.embedding_api_key)
    service = Service(catalogue, encoder, settings.timeout)
    try:
        yield service
    finally:
        # Do not wait for a silent server. Its pending request still delays the end of the process,
        # at most by the configured timeout.
        with anyio.move_on_after(_PATIENCE, shield=True):
            await anyio.to_thread.run_sync(service.close, abandon_on_cancel=True)


class Status(TypedDict):
    """The state of the products. Fields of an unknown build are null."""

    store: str
    collection: str
    products: int | None
    active: str | None
    model: str | None
    source: str | None
    built: str | None


def status(catalogue: Catalogue) -> Status:
    """Return the status of the products; their number is None before the first build.

    Raises:
        ApiError: The store fails.
    """
    with closing(catalogue.store()) as store:
        try:
            count = store.ask(lambda all_: all_.count())
        except NotBuiltError:
            count = None
    active = catalogue.file.read()
    built = datetime.fromtimestamp(active.built, UTC) if active else None
    return {
        "store": catalogue.place.key,
        "collection": catalogue.name,
        "products": count,
        "active": active.collection if active else None,
        "model": active.model if active else None,
        "source": active.source if active else None,
        "built": built.isoformat(timespec="seconds") if built else None,
    }
