"""The plugin: its tool, with the description for models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Final

import click
from pydantic import Field, StrictInt, StringConstraints

from standards_mcp import Health, InvalidInputError, Plugin, Tool, hookimpl

from .answers import WebAnswer
from .settings import WebSettings

if TYPE_CHECKING:
    from .search import Search

SEARCH: Final = """\
Search the live web for recent or changing facts: news, prices, opening hours. Answers with pages, \
the best first, each with its address: cite it. A price is the statement of a shop, with its \
currency; null means unknown."""
LONGEST_QUERY: Final = 400
MOST_WORDS: Final = 50
MOST_RESULTS: Final = 5
_SPARE_SECONDS: Final = 5

Query = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_QUERY),
    Field(description=f"The search text, at most {MOST_WORDS} words."),
]
TopK = Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS, description="Maximum number of results.")]


class WebPlugin(Plugin[WebSettings]):
    """Search tool and command for the web."""

    title = "Web search"
    settings_type = WebSettings

    _search: Search | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Close the connections to the provider at the end; the first search opens them."""
        try:
            yield
        finally:
            if self._search is not None:
                await self._search.aclose()
                self._search = None

    @hookimpl
    async def check_health(self) -> Health:
        """Report a missing key. This makes no request, because each search costs money."""
        from .providers import open_provider
        from .search import NO_KEY

        if open_provider(self.settings) is None:
            return Health(status="degraded", message=NO_KEY)
        return Health(status="ok", message=f"uses {self.settings.provider}")

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the tool."""
        return [
            Tool(
                name="web.search",
                title="Search the web",
                description=SEARCH,
                function=self.search,
                read_only=True,
                destructive=False,
                open_world=True,
                returns_untrusted_text=True,
                cache_scope="public",  # used if an administrator sets cache_ttl
                timeout=self.settings.timeout + _SPARE_SECONDS,
            )
        ]

    @hookimpl
    def register_commands(self) -> list[click.Command]:
        """Return the commands of ``standards-mcp web``."""
        from .cli import search_command

        return [search_command]

    async def search(self, query: Query, top_k: TopK = MOST_RESULTS) -> WebAnswer:
        """Return pages that answer a query.

        Raises:
            ToolError: The search fails.
        """
        words = query.split()
        if len(words) > MOST_WORDS:
            raise InvalidInputError(f"query has {len(words)} words; it may have {MOST_WORDS}.")
        from .providers import open_provider
        from .search import Search

        if self._search is None:
            self._search = Search(self.settings, open_provider(self.settings))
        return await self._search.search(" ".join(words), top_k)
