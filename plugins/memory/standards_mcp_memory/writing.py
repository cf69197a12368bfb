"""Memories, written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from standards_mcp import ApiError, InvalidInputError

from .answers import DeleteAnswer, StoreAnswer, UpdateAnswer
from .records import LARGEST_ID, Change, Document, Draft, Point, Vectors, text_of
from .service import Memory, missing_document
from .store import MissingCollectionError
from .store import collections as collection_jobs
from .store import points as point_jobs
from .store.collections import Collection

BATCH: Final = 64


@dataclass(slots=True)
class Counts:
    """What became of drafts."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class _Known:
    content_hash: str
    preview: str
    tags: list[str] | None


@dataclass(slots=True)
class _Index:
    """What a collection holds, as far as a writer must know.

    Attributes:
        highest: The highest id that was ever seen.
        named: Ids that drafts name, which those without get not, and the hashes they end with.
    """

    by_id: dict[int, _Known] = field(default_factory=dict[int, _Known])
    by_hash: dict[str, int] = field(default_factory=dict[str, int])
    highest: int = 0
    named: dict[int, str] = field(default_factory=dict[int, str])

    def with_hash(self, content_hash: str) -> int | None:
        """Return the id of what says the same now, and will when all drafts are written."""
        identifier = self.by_hash.get(content_hash)
        if identifier is None or self.by_id[identifier].content_hash != content_hash:
            return None
        return identifier if self.named.get(identifier, content_hash) == content_hash else None

    def add(self, identifier: int, known: _Known) -> None:
        self.by_id[identifier] = known
        self.by_hash[known.content_hash] = identifier
        self.highest = max(self.highest, identifier)


class Writer:
    """Writes memories, one writing at a time.

    Ids are not given again while it is there, also those of memories that were deleted.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._writing = anyio.Lock()
        self._highest: dict[str, int] = {}

    async def store(self, draft: Draft, collection: str) -> StoreAnswer:
        """Write a memory, if its title and content are new.

        Raises:
            ToolError: The store or the encoder fails.
        """
        async with self._writing, self._memory.store.held():
            there = await self._prepare(collection)
            known = await self._memory.store.run(
                lambda client: point_jobs.twin(client, collection, draft.title, draft.content)
            )
            if known is not None:
                await self._rewrite(there, known, draft)
                return {"id": known.id, "collection": collection, "created": False}
            identifier = self._next(collection, await self._highest_in(collection))
            vectors = await self._encoded(there, [draft.text])
            await self._upsert(collection, [Point(identifier, vectors[0], draft.payload())])
            return {"id": identifier, "collection": collection, "created": True}

    async def update(self, doc_id: int, collection: str, change: Change) -> UpdateAnswer:
        """Change a memory.

        Raises:
            NotFoundError: There is no such memory.
            ToolError: The store or the encoder fails, or nothing is left of the memory.
        """
        async with self._writing, self._memory.store.held():
            there = await self._memory.describe(collection)
            await self._memory.check_model(there)
            found = await self._memory.store.run(
                lambda client: point_jobs.retrieve(client, collection, [doc_id])
            )
            if doc_id not in found:
                raise missing_document(doc_id, collection)
            before = found[doc_id]
            draft = change.draft(before)
            if not draft.text.strip():
                raise InvalidInputError("A memory needs a title or a content.")
            is_new = await self._rewrite(there, before, draft)
            return {"id": doc_id, "collection": collection, "updated": is_new}

    async def delete(self, ids: Sequence[int], collection: str) -> list[int]:
        """Delete memories, and return the ids of those that there were.

        Raises:
            MissingCollectionError: There is no such collection.
            ToolError: The store fails.
        """
        async with self._writing, self._memory.store.held():
            await self._memory.describe(collection)
            highest = await self._highest_in(collection)
            self._highest[collection] = max(self._highest.get(collection, 0), highest)
            return await self._memory.store.run(
                lambda client: point_jobs.delete(client, collection, ids)
            )

    async def delete_one(self, doc_id: int, collection: str) -> DeleteAnswer:
        """Delete a memory.

        Raises:
            NotFoundError: There is no such memory.
            ToolError: The store fails.
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
        is_dry: bool = False,
    ) -> Counts:
        """Write many memories in batches; those that are there already stay as they are.

        Args:
            progress: Told how many drafts are done, of how many, after each batch.
            is_dry: Only count.

        Raises:
            ToolError: The store or the encoder fails. What was written until then stays.
        """
        counts = Counts()
        async with self._writing, self._memory.store.held():
            index = await self._index(collection)
            index.named = {each.id: each.content_hash for each in drafts if each.id}
            there = None if is_dry else await self._prepare(collection)
            for start in range(0, len(drafts), BATCH):
                batch = drafts[start : start + BATCH]
                plan = [self._planned(collection, index, draft, counts) for draft in batch]
                if there is not None:
                    await self._write_batch(there, [each for each in plan if each])
                progress(start + len(batch), len(drafts))
        return counts

    async def _prepare(self, collection: str) -> Collection:
        """Return the collection, of the configured model; it is made where there is none."""
        try:
            found = await self._memory.describe(collection)
        except MissingCollectionError:
            name = await self._memory.encoder.name()
            vectors = await self._memory.encoder.encode(["memory"], "document")
            await self._memory.store.run(
                lambda client: collection_jobs.create(client, collection, name, vectors.shape[1])
            )
            return Collection(collection, 0, name, vectors.shape[1])
        await self._memory.check_model(found)
        return found

    async def _encoded(self, found: Collection, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, which a collection can have."""
        vectors = await self._memory.encoder.encode(texts, "document")
        await self._memory.check_dimensions(found, vectors)
        return vectors

    async def _index(self, collection: str) -> _Index:
        index = _Index(highest=self._highest.get(collection, 0))
        with suppress(MissingCollectionError):
            await self._memory.describe(collection)
            async for each in self._memory.read_all(collection):
                index.add(each.id, _Known(each.content_hash, each.preview, each.own_tags))
        return index

    async def _highest_in(self, collection: str) -> int:
        documents = self._memory.read_all(collection, with_payload=False)
        return max([each.id async for each in documents], default=0)

    def _planned(
        self, collection: str, index: _Index, draft: Draft, counts: Counts
    ) -> Draft | None:
        """Return the draft with its id, or None where nothing is to be written."""
        identifier = draft.id or index.with_hash(draft.content_hash)
        known = index.by_id.get(identifier) if identifier else None
        if known is None:
            identifier = draft.id or self._unnamed(collection, index)
            counts.created += 1
        elif _says_the_same(draft, known):
            counts.unchanged += 1
            return None
        else:
            counts.updated += 1
        assert identifier is not None  # noqa: S101  - for type checkers
        payload = draft.payload()
        preview = payload["preview"] if known is None or draft.preview else known.preview
        tags = list(draft.tags) if draft.tags is not None else (known.tags if known else None)
        index.add(identifier, _Known(draft.content_hash, preview, tags))
        return replace(draft, id=identifier)

    async def _write_batch(self, there: Collection, drafts: Sequence[Draft]) -> None:
        # The last of several with one id counts.
        wanted = {draft.id: draft for draft in drafts if draft.id is not None}
        if not wanted:
            return
        before = await self._memory.store.run(
            lambda client: point_jobs.retrieve(client, there.name, list(wanted))
        )
        same = [
            identifier
            for identifier, document in before.items()
            if text_of(document.title, document.content) == wanted[identifier].text
        ]
        vectors = await self._vectors_of(there.name, same)
        new = [identifier for identifier in wanted if identifier not in vectors]
        if new:
            texts = [wanted[identifier].text for identifier in new]
            rows = await self._encoded(there, texts)
            vectors |= dict(zip(new, rows, strict=True))
        await self._upsert(
            there.name,
            [
                Point(
                    identifier,
                    vectors[identifier],
                    draft.payload(before[identifier].payload if identifier in before else None),
                )
                for identifier, draft in wanted.items()
            ],
        )

    async def _rewrite(self, there: Collection, before: Document, draft: Draft) -> bool:
        """Write a memory anew, if that changes anything."""
        payload = draft.payload(before.payload)
        if payload == dict(before.payload):
            return False
        await self._write_batch(there, [replace(draft, id=before.id)])
        return True

    async def _vectors_of(self, collection: str, ids: Sequence[int]) -> dict[int, Vectors]:
        if not ids:
            return {}
        return await self._memory.store.run(
            lambda client: point_jobs.vectors_of(client, collection, ids)
        )

    async def _upsert(self, collection: str, points: Sequence[Point]) -> None:
        await self._memory.store.run(lambda client: point_jobs.upsert(client, collection, points))

    def _unnamed(self, collection: str, index: _Index) -> int:
        """Return a new id that no draft names."""
        while (identifier := self._next(collection, index.highest)) in index.named:
            pass
        return identifier

    def _next(self, collection: str, highest: int) -> int:
        identifier = max(highest, self._highest.get(collection, 0)) + 1
        if identifier > LARGEST_ID:
            raise ApiError(f"Collection {collection} has no id left: its highest is the last.")
        self._highest[collection] = identifier
        return identifier


def _says_the_same(draft: Draft, known: _Known) -> bool:
    return (
        draft.content_hash == known.content_hash
        and draft.preview in (None, known.preview)
        and (draft.tags is None or list(draft.tags) == known.tags)
    )
