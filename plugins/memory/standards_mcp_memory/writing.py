"""Write memories: single ones, imports in batches, and prunes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import anyio

from standards_mcp import ApiError, InvalidInputError

from .matching import ImportedFiles, Match, Matcher, Origins, with_origin
from .records import LARGEST_ID, STORED, Document, Draft, Point
from .schemas import DeleteAnswer, Skipped, StoreAnswer, UpdateAnswer
from .service import Memory, missing_document
from .store import points as point_jobs
from .store.collections import Collection, MissingCollectionError

_BATCH_SIZE: Final = 64
_CONFLICT_STATUS: Final = 409


@dataclass(slots=True)
class WriteResult:
    """The result of an import.

    Attributes:
        ids: The ids of the memories that the drafts created or matched.
        skipped: The drafts that were not written.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    ids: set[int] = field(default_factory=set[int])
    skipped: list[Skipped] = field(default_factory=list[Skipped])


class StaleMemory(NamedTuple):
    """A memory that a file no longer contains, and its remaining origins."""

    document: Document
    remaining_origins: Origins


class Writer:
    """Writes memories, one job after another.

    All methods raise a `ToolError` if the store or the encoder fails.

    A new memory never gets the id of a memory that the writer has deleted.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._write_lock = anyio.Lock()
        self._highest_ids: dict[str, int] = {}

    async def store(self, draft: Draft, collection: str) -> StoreAnswer:
        """Write a memory, or update the other fields of the one with its title and content."""
        async with self._write_lock, self._memory.store.held():
            target = await self._prepare(collection)
            twin = await self._memory.store.run(
                point_jobs.find_equal, collection, draft.title, draft.content
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
        async with self._write_lock, self._memory.store.held():
            target = await self._memory.describe(collection)
            await self._memory.check_model(target)
            stored = await self._memory.store.run(point_jobs.retrieve, collection, [doc_id])
            if doc_id not in stored:
                raise missing_document(doc_id, collection)
            before = stored[doc_id]
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
        async with self._write_lock, self._memory.store.held():
            target = await self._memory.describe(collection)
            highest = await self._highest_in(collection)
            self._highest_ids[collection] = max(self._highest_ids.get(collection, 0), highest)
            return [*await self._memory.store.change(point_jobs.delete, target, ids)]

    async def delete_one(self, doc_id: int, collection: str) -> DeleteAnswer:
        """Delete a memory.

        Raises:
            NotFoundError: The memory or the collection does not exist.
        """
        if not await self.delete([doc_id], collection):
            raise missing_document(doc_id, collection)
        return {"id": doc_id, "collection": collection, "deleted": True}

    async def write(
        self,
        drafts: Sequence[Draft],
        collection: str,
        progress: Callable[[int, int], None],
        *,
        dry_run: bool = False,
    ) -> WriteResult:
        """Write many memories in batches. Drafts that change nothing are not written.

        Args:
            progress: Called after each batch with the numbers of processed and of all drafts.
            dry_run: Only count.

        Raises:
            ToolError: The store or the encoder fails. Earlier batches are kept.
        """
        result = WriteResult()
        async with self._write_lock, self._memory.store.held():
            stored: dict[int, Document] = {}
            with suppress(MissingCollectionError):
                await self._memory.describe(collection)
                documents = self._memory.read_all(collection)
                stored = {document.id: document async for document in documents}
            matcher = Matcher(stored, lambda highest: self._next_id(collection, highest), drafts)
            matches = matcher.match()
            own_ids = {draft.id for draft in drafts}
            new_ids = {match.draft.id for match in matches} - stored.keys() - own_ids
            target = None if dry_run else await self._prepare(collection)
            for start in range(0, len(drafts), _BATCH_SIZE):
                batch = matches[start : start + _BATCH_SIZE]
                changed = [match.draft for match in batch if _count_draft(match, stored, result)]
                if target is not None:
                    result.ids.update(await self._write_batch(target, changed, new_ids))
                progress(start + len(batch), len(drafts))
            if target is not None:
                remaining_by_id = matcher.remaining_origins().items()
                await self._store_origins(
                    target,
                    [
                        StaleMemory(stored[doc_id], remaining)
                        for doc_id, remaining in remaining_by_id
                    ],
                )
        return result

    async def find_stale(
        self, collection: str, ids: AbstractSet[int], imported: ImportedFiles, root: str
    ) -> list[StaleMemory]:
        """Return the memories from *root* whose files no longer contain them.

        Args:
            ids: Ids of memories that the import has matched. They are returned only if they have
                other origins remaining.
            imported: The files that the import has read.
            root: The imported file or folder.
        """
        stale: list[StaleMemory] = []
        with suppress(MissingCollectionError):
            async for document in self._memory.read_all(collection):
                origins = document.origins
                remaining = tuple(origin for origin in origins if not imported.is_removed(origin))
                is_within = any(origin.is_within(root) for origin in origins)
                if is_within and remaining != origins and (remaining or document.id not in ids):
                    stale.append(StaleMemory(document, remaining))
        return stale

    async def prune(self, collection: str, stale: Sequence[StaleMemory]) -> list[Document]:
        """Delete memories without origins, and return them; update the origins of the others.

        Memories that were changed meanwhile stay as they are.
        """
        async with self._memory.store.held():
            ids = [memory.document.id for memory in stale]
            stored = await self._memory.store.run(point_jobs.retrieve, collection, ids)
            same = [memory for memory in stale if stored.get(memory.document.id) == memory.document]
            orphans = [memory.document for memory in same if not memory.remaining_origins]
            deleted: list[int] = []
            if orphans:
                deleted = await self.delete([document.id for document in orphans], collection)
            async with self._write_lock:
                target = await self._memory.describe(collection)
                await self._store_origins(
                    target, [memory for memory in same if memory.remaining_origins]
                )
            return [document for document in orphans if document.id in deleted]

    async def _store_origins(self, target: Collection, stale: Sequence[StaleMemory]) -> None:
        """Store the remaining origins of memories."""
        for start in range(0, len(stale), _BATCH_SIZE):
            drafts = [
                Draft(
                    document.title,
                    document.content,
                    id=document.id,
                    origins=remaining,
                    replaces="origins",
                )
                for document, remaining in stale[start : start + _BATCH_SIZE]
            ]
            await self._write_batch(target, drafts)

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
        documents = self._memory.read_all(collection, with_payload=False)
        return max([document.id async for document in documents], default=0)

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
        # Of several drafts with one id, the last counts.
        drafts_by_id = {draft.id: draft for draft in drafts if draft.id is not None}
        if not drafts_by_id:
            return []
        replaced = [*drafts_by_id.keys() - new_ids]
        before = await self._memory.store.run(point_jobs.retrieve, target.name, replaced)
        documents = [
            Document(doc_id, draft.payload(before[doc_id].payload if doc_id in before else None))
            for doc_id, draft in drafts_by_id.items()
        ]
        points = await self._embed_documents(target, documents, before)
        replacing = [point for point in points if point.id not in new_ids]
        await self._memory.store.change(point_jobs.upsert, target, replacing)
        new = [point for point in points if point.id in new_ids]
        return [point.id for point in replacing] + await self._insert(target, new)

    async def _embed_documents(
        self, target: Collection, documents: Sequence[Document], before: Mapping[int, Document]
    ) -> list[Point]:
        """Return memories with their vectors; stored vectors are reused for unchanged texts."""

        def text(document: Document) -> str:
            return document.embedded_text(has_words=target.has_words)

        unchanged = [
            document.id
            for document in documents
            if document.id in before and text(before[document.id]) == text(document)
        ]
        vectors = await self._memory.store.run(point_jobs.vectors_of, target.name, unchanged)
        if changed := [document for document in documents if document.id not in vectors]:
            texts = [text(document) for document in changed]
            rows = await self._memory.encode(target, texts, "document")
            vectors |= {document.id: row for document, row in zip(changed, rows, strict=True)}
        return [
            Point(document.id, vectors[document.id], document.payload) for document in documents
        ]

    async def _insert(self, target: Collection, points: Sequence[Point]) -> list[int]:
        """Write new memories, and return their ids: new ones if another writer was faster."""
        ids: list[int] = []
        while points:
            stored = await self._memory.store.change(point_jobs.insert, target, points)
            lost = [point for point in points if not _is_stored(point, stored)]
            ids += [point.id for point in points if point not in lost]
            highest = await self._highest_in(target.name) if lost else 0
            points = [replace(point, id=self._next_id(target.name, highest)) for point in lost]
        return ids

    async def _rewrite(self, target: Collection, before: Document, draft: Draft) -> bool:
        """Write a draft over a stored memory if that changes it; return True if it does."""
        if draft.payload(before.payload) == before.payload:
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


def _count_draft(match: Match, stored: dict[int, Document], result: WriteResult) -> bool:
    """Count a draft in *result*; return True if it must be written to the store."""
    draft, identifier = match.draft, match.draft.id
    if match.problem is not None or identifier is None:
        result.skipped.append({"where": draft.where, "reason": match.problem or "has no id"})
        return False
    before = stored.get(identifier)
    result.ids.add(identifier)
    payload = draft.payload(before.payload if before else None)
    if match.is_repeated or (before and payload == before.payload):
        result.unchanged += 1
        return False
    if before is None:
        result.created += 1
    else:
        result.updated += 1
    stored[identifier] = Document(identifier, payload)
    return True


def _is_stored(point: Point, stored: Mapping[int, Document]) -> bool:
    """Return False if another writer has stored another memory under the id of a point."""
    current = stored.get(point.id)
    return current is None or (current.title, current.content) == (
        point.payload["title"],
        point.payload["content"],
    )
