"""Memories, found and read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from standards_mcp import ApiError, NotFoundError

from .answers import (
    BatchAnswer,
    CollectionsAnswer,
    DocumentAnswer,
    Reference,
    SearchAnswer,
)
from .embedding import Encoder, make_encoder
from .records import Document, Vectors
from .settings import MemorySettings
from .store import MissingCollectionError, Store, make_store
from .store import collections as collection_jobs
from .store import points as point_jobs
from .store.collections import REEMBEDDED, Collection
from .texts.markdown import one_line
from .texts.rendering import left_out, without_words


class Memory:
    """Finds and reads memories.

    Attributes:
        store: Where they are.
        encoder: What makes their vectors.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self.store, self.encoder = store, encoder

    async def search(
        self, query: str, collection: str, limit: int
    ) -> tuple[SearchAnswer, tuple[str, ...]]:
        """Return previews, and notes on what the search could not do.

        Raises:
            ToolError: The store or the encoder fails, or the collection is another model's.
        """
        try:
            found = await self._open(collection)
            await self.check_model(found)
            vectors = await self.encoder.encode([query], "query")
            await self.check_dimensions(found, vectors)
            hits = await self.store.search(found, vectors[0], query, limit)
        except MissingCollectionError as error:
            return {**_found(collection, query, []), "collections": error.names}, ()
        notes = [left_out(hits.odd)] if hits.odd else []
        if not found.has_words:
            notes.append(without_words(collection))
        return _found(collection, query, hits.hits), tuple(notes)

    async def fetch(self, doc_id: int, collection: str) -> DocumentAnswer:
        """Return a memory in full.

        Raises:
            NotFoundError: There is no such memory or collection.
            ToolError: The store fails.
        """
        found = await self._retrieve(collection, [doc_id])
        if doc_id not in found:
            raise missing_document(doc_id, collection)
        return answer_of(found[doc_id], collection)

    async def batch_fetch(self, references: Sequence[tuple[int, str]]) -> BatchAnswer:
        """Return memories in full, in the order of the references.

        Raises:
            ToolError: The store fails.
        """
        wanted: dict[str, dict[int, None]] = {}
        for doc_id, collection in references:
            wanted.setdefault(collection, {})[doc_id] = None
        found = {name: await self._retrieved(name, list(ids)) for name, ids in wanted.items()}
        documents = [
            answer_of(found[name][doc_id], name)
            for doc_id, name in references
            if doc_id in found[name]
        ]
        missing: list[Reference] = [
            {"doc_id": doc_id, "collection": name}
            for doc_id, name in dict.fromkeys(references)
            if doc_id not in found[name]
        ]
        return {"count": len(documents), "documents": documents, "not_found": missing}

    async def collections(self) -> CollectionsAnswer:
        """Return all collections, by name.

        Raises:
            ToolError: The store fails.
        """
        found: list[Collection] = []
        for name in await self.store.run(collection_jobs.names):
            with suppress(MissingCollectionError):  # deleted meanwhile
                found.append(await self.describe_any(name))
        return {
            "collections": [
                {"name": each.name, "count": each.count, "model": each.model} for each in found
            ]
        }

    async def read_all(
        self, collection: str, *, with_payload: bool = True
    ) -> AsyncGenerator[Document]:
        """Yield all memories, by id. Each page is a request with a deadline of its own.

        Raises:
            MissingCollectionError: There is no such collection.
            ToolError: The store fails.
        """
        offset: object = None
        while True:
            job = partial(
                point_jobs.page, name=collection, offset=offset, with_payload=with_payload
            )
            found = await self.store.run(job)
            for document in found.documents:
                yield document
            if (offset := found.after) is None:
                return

    async def describe(self, collection: str) -> Collection:
        """Return what is known of a collection.

        Raises:
            MissingCollectionError: There is no such collection.
            ApiError: All that it holds is only in the one that is to take its place, since
                `reembed` was ended.
            ToolError: The store fails.
        """
        try:
            found = await self.describe_any(collection)
        except MissingCollectionError as error:
            if collection + REEMBEDDED in error.names and await self.second(collection):
                raise _half_replaced(collection) from None
            raise
        if found.reembedded == collection:
            second = await self.second(collection)
            if second is not None and second.form == found.form:
                raise _half_replaced(collection)
        return found

    async def second(self, collection: str) -> Collection | None:
        """Return the collection that `reembed` has made to take the place of this one.

        Raises:
            ToolError: The store fails.
        """
        with suppress(MissingCollectionError):
            found = await self.describe_any(collection + REEMBEDDED)
            return found if found.reembedded == collection else None
        return None

    async def count(self, collection: str) -> int:
        """Return exactly how many memories there are; servers describe collections roughly.

        Raises:
            MissingCollectionError: There is no such collection.
            ToolError: The store fails.
        """
        return await self.store.run(lambda client: collection_jobs.count(client, collection))

    async def describe_any(self, collection: str) -> Collection:
        """Return what is known of a collection, whatever became of `reembed`.

        Raises:
            MissingCollectionError: There is no such collection.
            ToolError: The store fails.
        """
        return await self.store.run(lambda client: collection_jobs.describe(client, collection))

    async def check_model(self, found: Collection) -> None:
        """Check that the vectors of a collection are those of the encoder's model.

        Raises:
            ApiError: They are not.
        """
        if found.dimensions is None:
            raise ApiError(
                f"Collection '{one_line(found.name)}' has other vectors than one without a name, "
                "compared by cosine. Import its memories into a new collection."
            )
        name = await self.encoder.name()
        if found.model not in (None, name):
            vectors = await self.encoder.encode(["memory"], "query")
            raise _other_model(found, name, vectors.shape[1])

    async def check_dimensions(self, found: Collection, vectors: Vectors) -> None:
        """Check that vectors of the encoder have the length of a collection's.

        Raises:
            ApiError: They have not.
        """
        if found.dimensions != vectors.shape[1]:
            raise _other_model(found, await self.encoder.name(), vectors.shape[1])

    async def aclose(self) -> None:
        """Close the store and the encoder."""
        await self.store.aclose()
        await self.encoder.aclose()

    async def _open(self, collection: str) -> Collection:
        """Describe a collection while the encoder opens: both take seconds at the first call."""
        found, name = await asyncio.gather(
            self.describe(collection), self.encoder.name(), return_exceptions=True
        )
        if isinstance(found, BaseException):
            raise found
        if isinstance(name, BaseException):
            raise name
        return found

    async def _retrieve(self, collection: str, ids: Sequence[int]) -> dict[int, Document]:
        found: dict[int, Document] = {}
        with suppress(MissingCollectionError):
            found = await self.store.run(
                lambda client: point_jobs.retrieve(client, collection, ids)
            )
        if len(found) < len(ids):
            await self.describe(collection)  # which says whether they may be elsewhere
        return found

    async def _retrieved(self, collection: str, ids: Sequence[int]) -> dict[int, Document]:
        try:
            return await self._retrieve(collection, ids)
        except MissingCollectionError:
            return {}


@asynccontextmanager
async def open_memory(
    settings: MemorySettings, state_dir: Path, *, encoder_threads: int | None = None
) -> AsyncGenerator[Memory]:
    """Have memories at hand while the context is; the first call opens them.

    Args:
        encoder_threads: How many the built-in encoder uses; None: one for each processor.
    """
    encoder = make_encoder(settings, encoder_threads)
    memory = Memory(make_store(settings, state_dir), encoder)
    try:
        yield memory
    finally:
        await memory.aclose()


def missing_document(doc_id: int, collection: str) -> NotFoundError:
    """Return the error of a memory that is not there."""
    return NotFoundError(
        f"Document {doc_id} not found in collection {one_line(collection)}. Take the id from an "
        "answer of memory_search in this collection."
    )


def answer_of(document: Document, collection: str) -> DocumentAnswer:
    """Return a memory as the tools answer it."""
    return {
        "id": document.id,
        "collection": collection,
        "title": document.title,
        "preview": document.preview,
        "content": document.content,
        "tags": document.tags,
    }


def _found(collection: str, query: str, hits: Sequence[point_jobs.Hit]) -> SearchAnswer:
    return {
        "collection": collection,
        "query": query,
        "count": len(hits),
        "results": [
            {"id": each.id, "title": each.title, "preview": each.preview, "score": each.score}
            for each in hits
        ],
    }


def _half_replaced(collection: str) -> ApiError:
    return ApiError(
        f"Collection {one_line(collection)} is being reembedded. If that was ended, run "
        "`standards-mcp memory reembed` for it again."
    )


def _other_model(found: Collection, name: str, dimensions: int) -> ApiError:
    return ApiError(
        f"Collection '{one_line(found.name)}' holds vectors of {found.model or 'an unnamed model'} "
        f"({found.dimensions}), the configured model is {name} ({dimensions}). Run `standards-mcp "
        f"memory reembed` for this collection, or set [plugins.memory] model to the one it has."
    )
