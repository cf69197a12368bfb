"""Write memories: single ones, imports in batches, and prunes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import anyio

from standards_mcp import ApiError, InvalidInputError

from .matching import Matcher, StaleMemory, with_origin
from .records import (
    LARGEST_ID,
    STORED,
    Collection,
    Document,
    Draft,
    MissingCollectionError,
    Point,
)
from .schemas import Skipped, StoreAnswer, UpdateAnswer
from .service import Memory, missing_document

Progress: TypeAlias = Callable[[int, int], None]
BATCH_SIZE: Final = 64
_CONFLICT_STATUS: Final = 409


@dataclass(slots=True)
class WriteResult:
    """The result of an import.

    Attributes:
        ids: The ids of the memories that the drafts created or matched.
        skipped: The drafts that were not written.
        memories: All memories after the import, by id.
        stale: The memories of the pruned folder that no file contains any more.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    ids: set[int] = field(default_factory=set[int])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    memories: dict[int, Document] = field(default_factory=dict[int, Document])
    stale: list[StaleMemory] = field(default_factory=list[StaleMemory])

    def count(self, draft: Draft) -> bool:
        """Count a matched draft, and return True if it must be written to the store."""
        if draft.id is None:
            named_id = draft.origin and draft.origin.key
            reason = f"names id {named_id}, which another memory has"
            self.skipped.append({"where": draft.where, "reason": reason})
            return False
        before = self.memories.get(draft.id)
        after = draft.document(draft.id, before)
        self.ids.add(draft.id)
        self.memories[draft.id] = after
        if before is None:
            self.created += 1
        elif before != after:
            self.updated += 1
        else:
            self.unchanged += 1
        return before != after


class Writer:
    """Writes memories, one job after another.

    All methods raise a `ToolError` if the store or the encoder fails.

    A new memory never gets the id of a memory that the writer has deleted.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._store = memory, memory.store
        self._write_lock = anyio.Lock()
        self._highest_ids: dict[str, int] = {}

    async def store(self, draft: Draft, collection: str) -> StoreAnswer:
        """Write a memory, or update the other fields of the one with its title and content."""
        async with self._alone():
            target = await self._prepare(collection)
            twin = await self._store.run(
                collection, lambda db: db.find_equal(collection, draft.title, draft.content)
            )
            if twin is not None:
                origins = with_origin(twin.origins, STORED)
                await self._rewrite(target, twin, replace(draft, origins=origins))
                return {"id": twin.id, "collection": collection, "created": False}
            identifier = self._next_id(collection, await self._highest_in(collection))
            new = replace(draft, id=identifier)
            (stored_id,) = await self._write_batch(target, [new], {identifier})
            return {"id": stored_id, "collection": collection, "created": True}

    async def update(self, doc_id: int, collection: str, **fields: Any) -> UpdateAnswer:
        """Change fields of a memory: its title, content, preview and tags, as in `Draft`.

        Raises:
            NotFoundError: The memory or the collection does not exist.
            ToolError: The store or the encoder fails, or neither a title nor a content is left.
        """
        async with self._alone():
            target = await self._memory.describe(collection)
            await self._memory.check_model(target)
            before = (await self._retrieve(collection, [doc_id])).get(doc_id)
            if before is None:
                raise missing_document(doc_id, collection)
            changes = {name: value for name, value in fields.items() if value is not None}
            draft = replace(Draft(before.title, before.content), **changes)
            if draft.is_empty:
                raise InvalidInputError("A memory needs a title or a content.")
            is_new = await self._rewrite(target, before, draft)
            return {"id": doc_id, "collection": collection, "updated": is_new}

    async def delete(self, ids: Sequence[int], collection: str) -> list[int]:
        """Delete memories, and return the ids that existed.

        Raises:
            MissingCollectionError: The collection does not exist.
        """
        async with self._alone():
            return await self._delete(ids, collection)

    async def write(
        self,
        drafts: Sequence[Draft],
        collection: str,
        progress: Progress,
        files: Iterable[str] = (),
        prune_root: str | None = None,
        *,
        dry_run: bool = False,
    ) -> WriteResult:
        """Write many memories in batches. Drafts that change nothing are not written.

        Args:
            progress: Called after each batch with the numbers of written and of all changes.
            files: Files that were read, also such without drafts.
            prune_root: The file or folder whose stale memories are returned.
            dry_run: Only count.

        Raises:
            ToolError: The store or the encoder fails. Earlier batches are kept.
        """
        result = WriteResult()
        async with self._alone():
            with suppress(MissingCollectionError):
                await self._memory.describe(collection)
                documents = await self._memory.read_all(collection)
                result.memories = {document.id: document for document in documents}
            stored = dict(result.memories)
            matcher = Matcher(stored, partial(self._next_id, collection), drafts, files)
            matched = matcher.match()
            new_ids = {draft.id for draft in matched} - stored.keys()
            new_ids -= {draft.id for draft in drafts}
            changed = [draft for draft in matched if result.count(draft)]
            moved = [memory.as_draft() for memory in matcher.moved()]
            result.memories |= {
                draft.id: draft.document(draft.id, stored[draft.id]) for draft in moved if draft.id
            }
            if not dry_run:
                target = await self._prepare(collection)
                result.ids.update(await self._write_all(target, changed, new_ids, progress))
                await self._write_all(target, moved)
            if prune_root is not None:
                result.stale = matcher.stale(result.memories.values(), result.ids, prune_root)
        return result

    async def prune(self, collection: str, stale: Sequence[StaleMemory]) -> list[Document]:
        """Delete memories without origins, and return them; update the origins of the others.

        Memories that were changed meanwhile stay as they are.
        """
        async with self._alone():
            stored = await self._retrieve(collection, [memory.document.id for memory in stale])
            same = [memory for memory in stale if stored.get(memory.document.id) == memory.document]
            orphans = {
                memory.document.id: memory.document
                for memory in same
                if not memory.remaining_origins
            }
            deleted = await self._delete(list(orphans), collection)
            target = await self._memory.describe(collection)
            changed = [memory.as_draft() for memory in same if memory.remaining_origins]
            await self._write_all(target, changed)
            return [orphans[doc_id] for doc_id in deleted]

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        async with self._write_lock, self._store.held():
            yield

    async def _prepare(self, collection: str) -> Collection:
        """Return the collection after a check of its model; create it if it is missing."""
        try:
            target = await self._memory.describe(collection)
        except MissingCollectionError:
            try:
                await self._memory.create(collection)
            except ApiError as error:
                if error.status != _CONFLICT_STATUS:
                    raise
                # Another writer was faster, perhaps with another model.
            target = await self._memory.describe(collection)
        await self._memory.check_model(target)
        return target

    async def _highest_in(self, collection: str) -> int:
        documents = await self._memory.read_all(collection, with_payload=False)
        return max((document.id for document in documents), default=0)

    async def _retrieve(self, collection: str, ids: Sequence[int]) -> dict[int, Document]:
        return await self._store.run(collection, lambda db: db.retrieve(collection, ids))

    async def _delete(self, ids: Sequence[int], collection: str) -> list[int]:
        await self._memory.describe(collection)
        highest = await self._highest_in(collection)
        self._highest_ids[collection] = max(self._highest_ids.get(collection, 0), highest)
        return await self._store.run(collection, lambda db: db.delete(collection, ids))

    async def _write_all(
        self,
        target: Collection,
        drafts: Sequence[Draft],
        new_ids: AbstractSet[int | None] = frozenset(),
        progress: Progress = lambda _done, _total: None,
    ) -> list[int]:
        """Write drafts in batches, and return the ids of the written memories."""
        ids: list[int] = []
        for start in range(0, len(drafts), BATCH_SIZE):
            batch = drafts[start : start + BATCH_SIZE]
            ids += await self._write_batch(target, batch, new_ids)
            progress(start + len(batch), len(drafts))
        return ids

    async def _write_batch(
        self,
        target: Collection,
        drafts: Sequence[Draft],
        new_ids: AbstractSet[int | None] = frozenset(),
    ) -> list[int]:
        """Write drafts, and return the ids of the written memories.

        Args:
            new_ids: Ids that were chosen for new memories. Other ids replace stored memories.
        """
        ids = [draft.id for draft in drafts if draft.id is not None]
        before = await self._retrieve(target.name, [*{*ids} - new_ids])
        documents = dict(before)
        for doc_id, draft in zip(ids, drafts, strict=True):
            documents[doc_id] = draft.document(doc_id, documents.get(doc_id))
        unchanged = [
            doc_id
            for doc_id, document in before.items()
            if target.text_of(document) == target.text_of(documents[doc_id])
        ]
        points = await self._memory.add_vectors(
            target, list(documents.values()), unchanged, target.name
        )
        replacing = [point for point in points if point[0].id not in new_ids]
        await self._store.run(target.name, lambda db: db.upsert(target, replacing))
        new = [point for point in points if point[0].id in new_ids]
        return [document.id for document, _ in replacing] + await self._insert(target, new)

    async def _insert(self, target: Collection, points: Sequence[Point]) -> list[int]:
        """Write new memories, and return their ids: new ones if another writer was faster."""
        ids: list[int] = []
        while points:
            stored = await self._store.run(
                target.name, lambda db, batch: db.insert(target, batch), points
            )
            lost: list[Point] = []
            for document, vector in points:
                current = stored.get(document.id, document)
                if (current.title, current.content) == (document.title, document.content):
                    ids.append(document.id)
                else:
                    lost.append((document, vector))
            highest = await self._highest_in(target.name) if lost else 0
            points = [
                (replace(document, id=self._next_id(target.name, highest)), vector)
                for document, vector in lost
            ]
        return ids

    async def _rewrite(self, target: Collection, before: Document, draft: Draft) -> bool:
        """Write a draft over a stored memory if that changes it; return True if it does."""
        if draft.document(before.id, before) == before:
            return False
        await self._write_batch(target, [replace(draft, id=before.id)])
        return True

    def _next_id(self, collection: str, highest: int) -> int:
        # Numbers and not UUIDs: they are in the contract of the tools, and models copy short ids
        # without mistakes.
        identifier = max(highest, self._highest_ids.get(collection, 0)) + 1
        if identifier > LARGEST_ID:
            raise ApiError(f"Collection {collection} has no free id: its highest is the limit.")
        self._highest_ids[collection] = identifier
        return identifier
