"""The plugin: its tool, with the description for models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Annotated, Final

import click
from pydantic import Field, StrictInt, StringConstraints

from standards_mcp import ApiError, Health, InvalidInputError, Plugin, Tool, hookimpl

from .answers import WebAnswer
from .cli import search_command
from .providers import open_provider
from .search import NO_KEY, Search, searching
from .settings import WebSettings

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
        """Keep connections to the provider open."""
        async with searching(self.settings) as self._search:
            yield

    @hookimpl
    async def check_health(self) -> Health:
        """Report a missing key. This makes no request, because each search costs money."""
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
        return [search_command]

    async def search(self, query: Query, top_k: TopK = MOST_RESULTS) -> WebAnswer:
        """Return pages that answer a query.

        Raises:
            ToolError: The search fails.
        """
        words = query.split()
        if len(words) > MOST_WORDS:
            raise InvalidInputError(f"query has {len(words)} words; it may have {MOST_WORDS}.")
        if self._search is None:
            raise ApiError("Web search has not started.")
        return await self._search.search(" ".join(words), top_k)
