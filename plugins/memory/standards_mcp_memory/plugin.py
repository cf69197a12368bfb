"""The plugin class: tools with their descriptions, a health check and commands."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import click

from standards_mcp import Health, Plugin, Tool, ToolError, ToolResult, hookimpl

from . import schemas
from .records import Draft
from .rendering import render_batch, render_document, render_search
from .service import Memory, default_folder, missing_document, open_memory
from .settings import IN_MEMORY, MemorySettings
from .writing import Writer

_SPARE_SECONDS: Final = 20
"""For the first call: Qdrant's library takes seconds to import, and a large store to open."""


class MemoryPlugin(Plugin[MemorySettings]):
    """Contributes tools and commands that search, read and write memories."""

    title = "Memory"
    settings_type = MemorySettings
    instructions = """\
    Before you solve a problem, search for memories of it with {memory_search}.
    """

    _memory: Memory
    _writer: Writer

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Provide the memories to the tools, and close the store at the end."""
        # With one thread for the encoder, the other processors search the store meanwhile: ten
        # searches at once are faster.
        opened = open_memory(self.settings, self.context.state_dir, encoder_threads=1)
        async with opened as memory:
            self._memory, self._writer = memory, Writer(memory)
            yield

    @hookimpl
    async def check_health(self) -> Health:
        """Check that a Qdrant server answers. Opening an embedded store could lock out others."""
        if self.settings.url is None:
            return Health(status="ok", message="the first call opens the store")
        try:
            answer = await self._memory.collections()
        except ToolError as error:
            return Health(status="degraded", message=str(error))
        return Health(status="ok", message=f"{len(answer['collections'])} collections")

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the tools, whose descriptions are the docstrings; the writing ones if allowed."""
        batch_hints = {"read_only": True, "destructive": False, "returns_untrusted_text": True}
        read_hints = {**batch_hints, "idempotent": True}
        update_hints = {"destructive": True, "idempotent": True}
        store_hints = {**update_hints, "destructive": False}
        reading: list[tuple[Any, ...]] = [
            (self.search, "Search memories", schemas.SearchAnswer, read_hints),
            (self.fetch, "Fetch a memory", schemas.DocumentAnswer, read_hints),
            (self.batch_fetch, "Fetch several memories", schemas.BatchAnswer, batch_hints),
            (self.list_collections, "List collections", schemas.CollectionsAnswer, read_hints),
        ]
        writing: list[tuple[Any, ...]] = [
            (self.store, "Store a memory", schemas.StoreAnswer, store_hints),
            (self.update, "Change a memory", schemas.UpdateAnswer, update_hints),
            (self.delete, "Delete a memory", schemas.DeleteAnswer, {"destructive": True}),
        ]
        for function, title, answer, hints in reading + writing * self.settings.writable:
            yield Tool(
                name=f"memory_{function.__name__}",
                title=title,
                function=function,
                output_schema=answer,
                timeout=self.settings.lock_wait + 3 * self.settings.timeout + _SPARE_SECONDS,
                **hints,
            )

    @hookimpl
    def register_commands(self) -> list[click.Command]:
        """Return the commands of ``standards-mcp memory``."""
        from .commands import COLLECTION_COMMANDS, MemoryLocation  # noqa: PLC0415  - unused by a server
        from .import_commands import IMPORT_COMMANDS  # noqa: PLC0415

        location = MemoryLocation(self.settings, self.context.state_dir)
        return [location.bind(command) for command in (*IMPORT_COMMANDS, *COLLECTION_COMMANDS)]

    @hookimpl
    def register_backup(self) -> object:
        """Return the backup of an embedded store; a server has its own ways."""
        from .backup import MemoryBackup  # noqa: PLC0415  - unused by a server

        path = self.settings.path or str(default_folder(self.context.state_dir))
        if self.settings.url or path == IN_MEMORY:
            return None
        return MemoryBackup(Path(path), self.settings.lock_wait)

    async def search(
        self,
        query: schemas.Query,
        collection: schemas.CollectionName,
        limit: schemas.Limit = schemas.DEFAULT_RESULTS,
        response_format: schemas.Format = "markdown",
    ) -> ToolResult:
        """Search memories: past decisions, solved problems, known pitfalls.

        Answers with previews only, the nearest first, each with its id. Read them as the results of
        a web search, then get the few that you need in full with memory_fetch or
        memory_batch_fetch. Search before you solve a problem anew.
        """
        answer, notes = await self._memory.search(query, collection, limit)
        return _result(answer, render_search(answer), response_format, notes)

    async def fetch(
        self,
        doc_id: schemas.DocumentId,
        collection: schemas.CollectionName,
        response_format: schemas.Format = "markdown",
    ) -> ToolResult:
        """Get one memory in full by its id, from an answer of memory_search for the collection."""
        answer = await self._memory.fetch(doc_id, collection)
        return _result(answer, render_document(answer), response_format)

    async def batch_fetch(
        self, doc_refs: schemas.References, response_format: schemas.Format = "markdown"
    ) -> ToolResult:
        """Get up to 50 memories in full at once, also from several collections.

        The references are from answers of memory_search. Missing ones are listed in not_found.
        """
        references = [(reference.doc_id, reference.collection) for reference in doc_refs]
        answer = await self._memory.batch_fetch(references)
        return _result(answer, render_batch(answer), response_format)

    async def list_collections(self) -> ToolResult:
        """List the collections of memories, each with its count and the model of its vectors."""
        return _result(await self._memory.collections())

    async def store(
        self,
        collection: schemas.CollectionName,
        title: schemas.Title,
        content: schemas.Content,
        preview: schemas.PreviewText | None = None,
        tags: schemas.Tags | None = None,
    ) -> ToolResult:
        """Store a memory in a collection: a decision with its reason, or a solved problem.

        Give it a title by which it is recognised. The same title and content are stored once:
        created is false then. A missing collection is created.
        """
        draft = Draft(title, content, preview, _unique(tags))
        return _result(await self._writer.store(draft, collection))

    async def update(
        self,
        doc_id: schemas.DocumentId,
        collection: schemas.CollectionName,
        title: schemas.Title | None = None,
        content: schemas.Content | None = None,
        preview: schemas.PreviewText | None = None,
        tags: schemas.Tags | None = None,
    ) -> ToolResult:
        """Change a memory by its id: the given fields replace the stored ones, the rest stays."""
        answer = await self._writer.update(
            doc_id, collection, title=title, content=content, preview=preview, tags=_unique(tags)
        )
        return _result(answer)

    async def delete(
        self, doc_id: schemas.DocumentId, collection: schemas.CollectionName
    ) -> ToolResult:
        """Delete a memory by its id, for good."""
        if not await self._writer.delete([doc_id], collection):
            raise missing_document(doc_id, collection)
        return _result(schemas.DeleteAnswer(id=doc_id, collection=collection, deleted=True))


def _unique(tags: list[str] | None) -> tuple[str, ...] | None:
    return None if tags is None else tuple(dict.fromkeys(tags))


def _result(
    answer: Mapping[str, Any],
    markdown: str | None = None,
    response_format: schemas.Format = "markdown",
    notes: tuple[str, ...] = (),
) -> ToolResult:
    """Return a result with Markdown as text, or JSON if requested or without Markdown."""
    if markdown is None or response_format == "json":
        markdown = json.dumps(answer, ensure_ascii=False)
    return ToolResult(text=markdown, structured=dict(answer), notes=notes)
