"""The plugin: its tool, and what a model reads of it."""

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
Search the web as it is now, for what changes or is newer than what you know: news, prices, hours \
of opening. Answers with pages, the best first, each with its address: cite it. A price is what a \
shop states, with its currency; where it is null, none is known."""
LONGEST_QUERY: Final = 400
MOST_WORDS: Final = 50
MOST_RESULTS: Final = 5
_SPARE_SECONDS: Final = 5

Query = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_QUERY),
    Field(description=f"What to look for: at most {MOST_WORDS} words."),
]
TopK = Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS, description="The most results.")]


class WebPlugin(Plugin[WebSettings]):
    """Contributes searches of the web."""

    title = "Web search"
    settings_type = WebSettings

    _search: Search | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep connections to the provider."""
        async with searching(self.settings) as self._search:
            yield

    @hookimpl
    async def check_health(self) -> Health:
        """Tell whether there is a key. The provider is not asked, since each search is paid."""
        if open_provider(self.settings) is None:
            return Health(status="degraded", message=NO_KEY)
        return Health(status="ok", message=f"asks {self.settings.provider}")

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
                cache_scope="public",  # where an admin sets cache_ttl for it
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
            ToolError: There are none, for a reason that its message names.
        """
        words = query.split()
        if len(words) > MOST_WORDS:
            raise InvalidInputError(f"query has {len(words)} words; it may have {MOST_WORDS}.")
        if self._search is None:
            raise ApiError("Web search has not started.")
        return await self._search.search(" ".join(words), top_k)
