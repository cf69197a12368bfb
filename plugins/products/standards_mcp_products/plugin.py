"""The plugin class: the search tool, its descriptions for models, and its time limit."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import anyio
import anyio.to_thread
import click
from pydantic import Field, StrictInt, StringConstraints

from standards_mcp import Health, Plugin, TimedOutError, Tool, ToolError, hookimpl

from .filters import read_filters
from .search import SearchAnswer, search
from .settings import ProductsSettings
from .store import Catalogue, Store

if TYPE_CHECKING:
    from standards_mcp_encoders import TextEncoder

T = TypeVar("T")
SEARCH_DESCRIPTION: Final = """\
Search the product catalogue by kind, purpose or material of a product, in whole words. Answers \
with the nearest products, the best first. Keep prices and brands out of the query: give them as \
filters, such as {"price": {"$lte": 15}}. A price or rating of null is unknown: say so, and \
do not guess. The last products may fit badly, because the search always returns the nearest."""
FILTERS_DESCRIPTION: Final = """\
Fields with a value or with operators: {"brand": "Acme", "price": {"$gte": 2, "$lt": 9}}. Fields: \
sku, title, brand, category, price, rating, ingredients, price_per_oz. Operators: $eq $ne $gt $gte \
$lt $lte $in $nin; {"document": {"$contains": "steel"}} looks in the text; $and and $or take lists \
of filters. $ne and $nin also find products without the field."""
_SPARE_SECONDS: Final = 65
"""Time that the tool has beyond `timeout`: for a remote encoder and the first call's imports."""
_THREADS: Final = 8
_MAX_THREADS: Final = 2 * _THREADS
"""Limit that includes abandoned threads, whose searches have exceeded the time limit."""
_CLOSE_SECONDS: Final = 3.0

Query = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=1000),
    Field(description="A description of the wanted product."),
]
TopK = Annotated[StrictInt, Field(ge=1, le=100, description="Maximum number of results.")]
Filters = Annotated[dict[str, Any] | None, Field(description=FILTERS_DESCRIPTION)]


class ProductsPlugin(Plugin[ProductsSettings]):
    """Search tool and commands for a product catalogue. Slow work runs in threads."""

    title = "Products"
    settings_type = ProductsSettings

    _store: Store
    _encoder: TextEncoder | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep the store open after the first search."""
        self._catalogue = Catalogue(self.settings, self.context.state_dir)
        self._store = Store(self._catalogue)
        self._encoder_lock = threading.Lock()
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._thread_slots = threading.Semaphore(_MAX_THREADS)
        try:
            yield
        finally:
            # Do not wait long for a server that does not answer. Its pending request still delays
            # the end of the process, by at most the setting `timeout`.
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await anyio.to_thread.run_sync(self._store.close, abandon_on_cancel=True)

    @hookimpl
    async def check_health(self) -> Health:
        """Report the number of products."""
        try:
            count = await self._in_time(
                lambda: self._store.ask(lambda collection: collection.count())
            )
        except ToolError as error:
            return Health(status="degraded", message=str(error))
        return Health(status="ok", message=f"{count:,} products")

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the search tool."""
        return [
            Tool(
                name="rag.search",
                title="Search products",
                description=SEARCH_DESCRIPTION,
                function=self.search,
                read_only=True,
                destructive=False,
                idempotent=True,
                open_world=False,
                returns_untrusted_text=True,
                timeout=self.settings.timeout + _SPARE_SECONDS,
            )
        ]

    @hookimpl
    def register_commands(self) -> list[click.Command]:
        """Return the commands of ``standards-mcp products``."""
        from .cli import commands  # noqa: PLC0415  - builds need what the server does not

        return commands(self.settings, self.context.state_dir)

    async def search(self, query: Query, top_k: TopK = 5, filters: Filters = None) -> SearchAnswer:
        """Return products that answer a query.

        Raises:
            ToolError: The search fails.
        """
        conditions = read_filters(filters)
        model, vector = await anyio.to_thread.run_sync(self._encode, query, limiter=self._threads)
        return await self._in_time(lambda: search(self._store, model, vector, conditions, top_k))

    def _encode(self, query: str) -> tuple[str, list[float]]:
        import_module("chromadb")  # takes seconds, which must not count as search time
        with self._encoder_lock:
            encoder = self._encoder = self._encoder or self.settings.open_encoder()
        return encoder.name, encoder.encode([query])[0].tolist()

    async def _in_time(self, question: Callable[[], T]) -> T:
        def limited() -> T:
            # A semaphore, because the limiter does not count abandoned threads.
            if not self._thread_slots.acquire(blocking=False):
                raise TimeoutError
            try:
                return question()
            finally:
                self._thread_slots.release()

        try:
            with anyio.fail_after(self.settings.timeout):
                return await anyio.to_thread.run_sync(
                    limited, abandon_on_cancel=True, limiter=self._threads
                )
        except TimeoutError:
            raise TimedOutError(
                f"The products in {self._catalogue.store_name} did not answer within "
                f"{self.settings.timeout:g} s. Try again, or set [plugins.products] timeout."
            ) from None
