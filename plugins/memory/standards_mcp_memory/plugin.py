"""The plugin: its tools, and what a model reads of them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import click

from standards_mcp import ApiError, Health, Plugin, Tool, ToolError, ToolResult, hookimpl

from .answers import BatchAnswer, CollectionsAnswer, DocumentAnswer, SearchAnswer
from .arguments import (
    USUAL_RESULTS,
    CollectionName,
    DocumentId,
    Format,
    Limit,
    Query,
    References,
)
from .service import Memory, open_memory
from .settings import MemorySettings
from .texts.rendering import render_batch, render_document, render_search
from .writing import Writer
from .writing_tools import WritingTools

SEARCH: Final = """\
Search what was learned before: past decisions, solved problems, known pitfalls. Answers with \
previews only, the nearest first, each with its id. Read them as the results of a web search, then \
get the few that you need in full with memory_fetch or memory_batch_fetch. Search before you solve \
a problem anew."""
FETCH: Final = """\
Get one memory in full by its id, from an answer of memory_search in the same collection."""
BATCH: Final = """\
Get up to 50 memories in full at once, also from several collections, by references from answers \
of memory_search. What is not there is listed in not_found."""
LIST: Final = """\
List the collections of memories, each with its count and the model of its vectors."""
_SPARE_SECONDS: Final = 20
"""For the first call: Qdrant's library takes seconds to import, and a large store to open."""


class MemoryPlugin(Plugin[MemorySettings]):
    """Contributes searches of memories, and what reads and writes them."""

    title = "Memory"
    settings_type = MemorySettings
    instructions = """\
    Before you solve a problem, look with {memory_search} for what was learned about it.
    """

    _parts: tuple[Memory, Writer] | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Close what the first call opens."""
        # The other processors search the store meanwhile: ten searches at once are faster by it.
        opened = open_memory(self.settings, self.context.state_dir, encoder_threads=1)
        async with opened as memory:
            self._parts = memory, Writer(memory)
            yield

    @hookimpl
    async def check_health(self) -> Health:
        """Tell whether a server answers. An embedded store is left alone: others may have it."""
        if self.settings.url is None:
            return Health(status="ok", message="the first call opens the store")
        try:
            found = await self._opened()[0].collections()
        except ToolError as error:
            return Health(status="degraded", message=str(error))
        return Health(status="ok", message=f"{len(found['collections'])} collections")

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the tools; those that write only where the settings say so."""
        timeout = self.settings.lock_wait + 3 * self.settings.timeout + _SPARE_SECONDS
        reading: dict[str, Any] = {
            "read_only": True,
            "destructive": False,
            "returns_untrusted_text": True,
            "timeout": timeout,
        }
        writing = WritingTools(self._opened).tools(timeout) if self.settings.writable else []
        return [
            Tool(
                name="memory_search",
                title="Search memories",
                description=SEARCH,
                function=self.search,
                output_schema=SearchAnswer,
                idempotent=True,
                **reading,
            ),
            Tool(
                name="memory_fetch",
                title="Fetch a memory",
                description=FETCH,
                function=self.fetch,
                output_schema=DocumentAnswer,
                idempotent=True,
                **reading,
            ),
            Tool(
                name="memory_batch_fetch",
                title="Fetch several memories",
                description=BATCH,
                function=self.batch_fetch,
                output_schema=BatchAnswer,
                **reading,
            ),
            Tool(
                name="memory_list_collections",
                title="List collections",
                description=LIST,
                function=self.list_collections,
                output_schema=CollectionsAnswer,
                idempotent=True,
                **reading,
            ),
            *writing,
        ]

    @hookimpl
    def register_commands(self) -> list[click.Command]:
        """Return the commands of ``standards-mcp memory``."""
        from .cli import commands  # noqa: PLC0415  - a server has none

        return commands(self.settings, self.context.state_dir)

    async def search(
        self,
        query: Query,
        collection: CollectionName,
        limit: Limit = USUAL_RESULTS,
        response_format: Format = "markdown",
    ) -> ToolResult:
        """Return previews of the memories that are nearest to a query."""
        answer, notes = await self._opened()[0].search(query, collection, limit)
        return _result(answer, lambda: render_search(answer), response_format, notes)

    async def fetch(
        self, doc_id: DocumentId, collection: CollectionName, response_format: Format = "markdown"
    ) -> ToolResult:
        """Return a memory in full."""
        answer = await self._opened()[0].fetch(doc_id, collection)
        return _result(answer, lambda: render_document(answer), response_format)

    async def batch_fetch(
        self, doc_refs: References, response_format: Format = "markdown"
    ) -> ToolResult:
        """Return memories in full."""
        references = [(each.doc_id, each.collection) for each in doc_refs]
        answer = await self._opened()[0].batch_fetch(references)
        return _result(answer, lambda: render_batch(answer), response_format)

    async def list_collections(self) -> ToolResult:
        """List the collections."""
        answer = await self._opened()[0].collections()
        return ToolResult(text=json.dumps(answer, ensure_ascii=False), structured=dict(answer))

    def _opened(self) -> tuple[Memory, Writer]:
        if self._parts is None:
            raise ApiError("The memory plugin has not started.")
        return self._parts


def _result(
    answer: Mapping[str, Any],
    markdown: Callable[[], str],
    form: Format,
    notes: tuple[str, ...] = (),
) -> ToolResult:
    text = json.dumps(answer, ensure_ascii=False) if form == "json" else markdown()
    return ToolResult(text=text, structured=dict(answer), notes=notes)
