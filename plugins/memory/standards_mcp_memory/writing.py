"""Write memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import anyio

from standards_mcp import ApiError, InvalidInputError

from .answers import DeleteAnswer, Skipped, StoreAnswer, UpdateAnswer
from .matching import Known, Match, Matcher
from .origins import STORED, Origin, Reading, with_origin
from .records import LARGEST_ID, Change, Document, Draft, Point, Vectors
from .service import Memory, missing_document
from .store import MissingCollectionError
from .store import points as point_jobs
from .store.collections import Collection

BATCH: Final = 64
_CONFLICT: Final = 409
_NONE: Final[frozenset[int | None]] = frozenset()


@dataclass(slots=True)
class Written:
    """The result of an import.

    Attributes:
        ids: The memories that the drafts are versions of.
        skipped: The drafts that were not written.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    ids: set[int] = field(default_factory=set[int])
    skipped: list[Skipped] = field(default_factory=list[Skipped])


class Stale(NamedTuple):
    """A memory that a file does not state any more, and the origins that are left."""

    document: Document
    left: tuple[Origin, ...]


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
                origins = with_origin(known.origins, STORED)
                await self._rewrite(there, known, replace(draft, origins=origins))
                return {"id": known.id, "collection": collection, "created": False}
            identifier = self._next(collection, await self._highest_in(collection))
            new = replace(draft, id=identifier)
            (written,) = await self._write_batch(there, [new], {identifier})
            return {"id": written, "collection": collection, "created": True}

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
            if draft.is_empty:
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
            return await self._memory.store.delete(collection, ids)

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
    ) -> Written:
        """Write many memories in batches. Drafts that change nothing are not written.

        Args:
            progress: Called after each batch with the number of drafts that are done, and of all.
            is_dry: Only count.

        Raises:
            ToolError: The store or the encoder fails. Batches before that are kept.
        """
        written = Written()
        async with self._writing, self._memory.store.held():
            known = await self._known(collection)
            matcher = Matcher(known, lambda highest: self._next(collection, highest), drafts)
            matches = matcher.match()
            fresh = (
                {each.draft.id for each in matches} - known.keys() - {each.id for each in drafts}
            )
            there = None if is_dry else await self._prepare(collection)
            for start in range(0, len(drafts), BATCH):
                batch = matches[start : start + BATCH]
                changed = [each for each in batch if _is_change(each, known, written)]
                if there is not None:
                    wanted = [each.draft for each in changed]
                    written.ids.update(await self._write_batch(there, wanted, fresh))
                progress(start + len(batch), len(drafts))
            if there is not None and (left := matcher.forgotten()):
                found = await self._memory.store.run(
                    lambda client: point_jobs.retrieve(client, collection, list(left))
                )
                await self._forget(collection, [Stale(found[each], left[each]) for each in found])
        return written

    async def stale(
        self, collection: str, ids: AbstractSet[int], reading: Reading, root: str
    ) -> list[Stale]:
        """Return the memories of a file or folder that have lost origins.

        Args:
            ids: The memories that the import has found: they stay.
            reading: The files that the import has read.
            root: The file or folder.

        Raises:
            ToolError: The store fails.
        """
        found: list[Stale] = []
        with suppress(MissingCollectionError):
            async for each in self._memory.read_all(collection):
                left = tuple(origin for origin in each.origins if not reading.lacks(origin))
                is_concerned = any(origin.is_within(root) for origin in each.origins)
                if is_concerned and left != each.origins and (left or each.id not in ids):
                    found.append(Stale(each, left))
        return found

    async def others(self, collection: str, ids: AbstractSet[int]) -> list[Stale]:
        """Return all other memories of a collection, whatever states them.

        Raises:
            ToolError: The store fails.
        """
        return [
            Stale(each, ())
            async for each in self._memory.read_all(collection)
            if each.id not in ids
        ]

    async def prune(self, collection: str, stale: Sequence[Stale]) -> list[Document]:
        """Delete memories without origins, and return them; others only forget those that are gone.

        Memories that were changed meanwhile stay as they are.

        Raises:
            ToolError: The store fails.
        """
        async with self._memory.store.held():
            ids = [each.document.id for each in stale]
            now = await self._memory.store.run(
                lambda client: point_jobs.retrieve(client, collection, ids)
            )
            same = [each for each in stale if now.get(each.document.id) == each.document]
            gone = [each.document for each in same if not each.left]
            deleted = set(await self.delete([each.id for each in gone], collection) if gone else [])
            if left := [each for each in same if each.left]:
                async with self._writing:
                    await self._forget(collection, left)
            return [each for each in gone if each.id in deleted]

    async def _forget(self, collection: str, stale: Sequence[Stale]) -> None:
        """Store the origins that are left."""
        there = await self._memory.describe(collection)
        for start in range(0, len(stale), BATCH):
            drafts = [
                Draft(
                    each.document.title,
                    each.document.content,
                    id=each.document.id,
                    origins=each.left,
                    replaces="origins",
                )
                for each in stale[start : start + BATCH]
            ]
            await self._write_batch(there, drafts)

    async def _prepare(self, collection: str) -> Collection:
        """Return the collection, of the configured model; it is made where there is none."""
        try:
            found = await self._memory.describe(collection)
        except MissingCollectionError:
            name = await self._memory.encoder.name()
            vectors = await self._memory.encoder.encode(["memory"], "document")
            made = Collection(collection, 0, name, vectors.shape[1], has_words=True)
            try:
                await self._memory.store.create(made)
            except ApiError as error:
                if error.status != _CONFLICT:
                    raise
                # Another writer was faster, perhaps with another model.
            found = await self._memory.describe(collection)
        await self._memory.check_model(found)
        return found

    async def _encoded(self, found: Collection, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, which a collection can have."""
        vectors = await self._memory.encoder.encode(texts, "document")
        await self._memory.check_dimensions(found, vectors)
        return vectors

    async def _known(self, collection: str) -> dict[int, Known]:
        """Return the memories of a collection by id; none if it does not exist."""
        known: dict[int, Known] = {}
        with suppress(MissingCollectionError):
            await self._memory.describe(collection)
            async for each in self._memory.read_all(collection):
                known[each.id] = Known.of(each)
        return known

    async def _highest_in(self, collection: str) -> int:
        documents = self._memory.read_all(collection, with_payload=False)
        return max([each.id async for each in documents], default=0)

    async def _write_batch(
        self, there: Collection, drafts: Sequence[Draft], fresh: AbstractSet[int | None] = _NONE
    ) -> list[int]:
        """Write drafts, and return the ids that they have got.

        Args:
            fresh: Ids that were chosen for new memories. Other ids replace what they name.
        """
        # The last of several with one id counts.
        wanted = {draft.id: draft for draft in drafts if draft.id is not None}
        if not wanted:
            return []
        before = await self._memory.store.run(
            lambda client: point_jobs.retrieve(client, there.name, list(wanted.keys() - fresh))
        )
        documents = [
            Document(each, draft.payload(before[each].payload if each in before else None))
            for each, draft in wanted.items()
        ]
        points = await self._points(there, documents, before)
        named = [each for each in points if each.id not in fresh]
        await self._memory.store.upsert(there, named)
        new = [each for each in points if each.id in fresh]
        return [each.id for each in named] + await self._insert(there, new)

    async def _points(
        self, there: Collection, documents: Sequence[Document], before: Mapping[int, Document]
    ) -> list[Point]:
        """Return memories with their vectors; the stored vector where the text has not changed."""

        def text(document: Document) -> str:
            return document.embedded_text(has_words=there.has_words)

        same = [
            each.id
            for each in documents
            if each.id in before and text(before[each.id]) == text(each)
        ]
        vectors = await self._memory.store.run(
            lambda client: point_jobs.vectors_of(client, there.name, same)
        )
        if new := [each for each in documents if each.id not in vectors]:
            rows = await self._encoded(there, [text(each) for each in new])
            vectors |= {each.id: row for each, row in zip(new, rows, strict=True)}
        return [Point(each.id, vectors[each.id], each.payload) for each in documents]

    async def _insert(self, there: Collection, points: Sequence[Point]) -> list[int]:
        """Write new memories, and return their ids: others where another writer was faster."""
        ids: list[int] = []
        while points:
            stored = await self._memory.store.insert(there, points)
            lost = [each for each in points if not _is_stored(each, stored)]
            ids += [each.id for each in points if each not in lost]
            highest = await self._highest_in(there.name) if lost else 0
            points = [replace(each, id=self._next(there.name, highest)) for each in lost]
        return ids

    async def _rewrite(self, there: Collection, before: Document, draft: Draft) -> bool:
        """Write a memory anew, if that changes anything."""
        payload = draft.payload(before.payload)
        if payload == dict(before.payload):
            return False
        await self._write_batch(there, [replace(draft, id=before.id)])
        return True

    def _next(self, collection: str, highest: int) -> int:
        identifier = max(highest, self._highest.get(collection, 0)) + 1
        if identifier > LARGEST_ID:
            raise ApiError(f"Collection {collection} has no id left: its highest is the last.")
        self._highest[collection] = identifier
        return identifier


def _is_change(match: Match, known: dict[int, Known], written: Written) -> bool:
    """Count a draft, and return True if it is to be written."""
    draft, identifier = match.draft, match.draft.id
    if match.problem is not None or identifier is None:
        written.skipped.append({"where": draft.where, "reason": match.problem or "has no id"})
        return False
    before = known.get(identifier)
    written.ids.add(identifier)
    if match.is_repeated or (before and before.says(draft)):
        written.unchanged += 1
        return False
    if before is None:
        written.created += 1
    else:
        written.updated += 1
    after = draft.payload()
    tags = before.tags if before and draft.tags is None else draft.tags
    known[identifier] = replace(
        Known.of(Document(identifier, after)),
        preview=before.preview if before and draft.preview is None else after["preview"],
        tags=None if tags is None else list(tags),
    )
    return True


def _is_stored(point: Point, stored: Mapping[int, Document]) -> bool:
    """Return True unless another writer's memory has the id; an equal memory counts as stored."""
    now = stored.get(point.id)
    return now is None or now.content_hash == Document(point.id, point.payload).content_hash
