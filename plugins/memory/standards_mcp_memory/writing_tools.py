"""The tools that write, for servers whose settings say ``writable = true``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from standards_mcp import Tool, ToolResult

from .answers import DeleteAnswer, StoreAnswer, UpdateAnswer
from .arguments import CollectionName, Content, DocumentId, PreviewText, Tags, Title
from .records import Change, Draft
from .service import Memory
from .writing import Writer

STORE: Final = """\
Remember something for later, in a collection: what was decided and why, how a problem was solved. \
Give it a title by which it is recognised. The same title and content are stored once: created is \
false then. A collection that is missing is made."""
UPDATE: Final = """\
Change a memory by its id: what is given replaces what is stored, and the rest stays."""
DELETE: Final = """\
Delete a memory by its id, for good."""


class WritingTools:
    """The tools, over a memory that may not be open yet.

    Args:
        opened: Returns it.
    """

    def __init__(self, opened: Callable[[], tuple[Memory, Writer]]) -> None:
        self._opened = opened

    def tools(self, timeout: float) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                name="memory_store",
                title="Store a memory",
                description=STORE,
                function=self.store,
                output_schema=StoreAnswer,
                destructive=False,
                idempotent=True,
                timeout=timeout,
            ),
            Tool(
                name="memory_update",
                title="Change a memory",
                description=UPDATE,
                function=self.update,
                output_schema=UpdateAnswer,
                destructive=True,
                idempotent=True,
                timeout=timeout,
            ),
            Tool(
                name="memory_delete",
                title="Delete a memory",
                description=DELETE,
                function=self.delete,
                output_schema=DeleteAnswer,
                destructive=True,
                timeout=timeout,
            ),
        ]

    async def store(
        self,
        collection: CollectionName,
        title: Title,
        content: Content,
        preview: PreviewText | None = None,
        tags: Tags | None = None,
    ) -> ToolResult:
        """Store a memory, if it is new."""
        _, writer = self._opened()
        draft = Draft(title, content, preview, _tags(tags))
        return _result(await writer.store(draft, collection))

    async def update(
        self,
        doc_id: DocumentId,
        collection: CollectionName,
        title: Title | None = None,
        content: Content | None = None,
        preview: PreviewText | None = None,
        tags: Tags | None = None,
    ) -> ToolResult:
        """Change what is given of a memory."""
        _, writer = self._opened()
        change = Change(title, content, preview, _tags(tags))
        return _result(await writer.update(doc_id, collection, change))

    async def delete(self, doc_id: DocumentId, collection: CollectionName) -> ToolResult:
        """Delete a memory."""
        _, writer = self._opened()
        return _result(await writer.delete_one(doc_id, collection))


def _tags(tags: list[str] | None) -> tuple[str, ...] | None:
    return None if tags is None else tuple(dict.fromkeys(tags))


def _result(answer: Mapping[str, Any]) -> ToolResult:
    return ToolResult(text=json.dumps(answer, ensure_ascii=False), structured=dict(answer))
