"""The plugin: its tool, with the description for models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final

import click
from pydantic import Field, StrictInt, StringConstraints

from standards_mcp import ApiError, Health, Plugin, Tool, ToolError, hookimpl

from .search import SearchAnswer
from .service import Service, catalogue_of, serving
from .settings import ProductsSettings

SEARCH: Final = """\
Search the product catalogue by kind, purpose or material of a product, in whole words. Answers \
with the nearest products, the best first. Keep prices and brands out of the query: give them as \
filters, such as {"price": {"$lte": 15}}. A price or rating of null is unknown: say so, and \
do not guess. The last products may fit badly, because the search always returns the nearest."""
FILTERS: Final = """\
Fields with a value or with operators: {"brand": "Acme", "price": {"$gte": 2, "$lt": 9}}. Fields: \
sku, title, brand, category, price, rating, ingredients, price_per_oz. Operators: $eq $ne $gt $gte \
$lt $lte $in $nin; {"document": {"$contains": "steel"}} looks in the text; $and and $or take lists \
of filters. $ne and $nin also find products without the field."""
_SPARE_SECONDS: Final = 65
"""Time for an encoder at an address, and for the imports of the first call."""

Query = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=1000),
    Field(description="A description of the wanted product."),
]
TopK = Annotated[StrictInt, Field(ge=1, le=100, description="Maximum number of results.")]
Filters = Annotated[dict[str, Any] | None, Field(description=FILTERS)]


class ProductsPlugin(Plugin[ProductsSettings]):
    """Search tool and commands for a product catalogue."""

    title = "Products"
    settings_type = ProductsSettings

    _running: Service | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep the store open after the first search."""
        catalogue = catalogue_of(self.settings, self.context.state_dir)
        async with serving(self.settings, catalogue) as self._running:
            yield

    @property
    def _service(self) -> Service:
        if self._running is None:
            raise ApiError("The product search has not started.")
        return self._running

    @hookimpl
    async def check_health(self) -> Health:
        """Report the number of products."""
        try:
            count = await self._service.count()
        except ToolError as error:
            return Health(status="degraded", message=str(error))
        return Health(status="ok", message=f"{count:,} products")

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the tool."""
        return [
            Tool(
                name="rag.search",
                title="Search products",
                description=SEARCH,
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
        return await self._service.search(query, top_k, filters)
