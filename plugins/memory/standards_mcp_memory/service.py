"""Search and read memories: `Memory` combines a store and an encoder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from standards_mcp import ApiError, NotFoundError

from .embedded import EmbeddedStore
from .encoders import Encoder, Kind
from .records import COPY_SUFFIX, Collection, Document, MissingCollectionError, Point, Vectors
from .rendering import left_out_note, one_line
from .schemas import BatchAnswer, CollectionsAnswer, DocumentAnswer, Preview, SearchAnswer
from .settings import MemorySettings
from .store import RemoteStore, Store

_PAGE: Final = 1000
_DIGITS: Final = 3


class Memory:
    """Searches and reads memories.

    All methods raise a `ToolError` if the store or the encoder fails.

    Attributes:
        store: The Qdrant store of the memories.
        encoder: The encoder of queries and texts.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self.store, self.encoder = store, encoder

    async def search(
        self, query: str, collection: str, limit: int
    ) -> tuple[SearchAnswer, tuple[str, ...]]:
        """Return previews, and notes on the limits of the search.

        Raises:
            ToolError: The store or the encoder fails, or the collection has another model.
        """
        answer: SearchAnswer = {"collection": collection, "query": query, "count": 0, "results": []}
        try:
            # Both at once: opening the store and the encoder takes seconds at the first call.
            target, _ = await asyncio.gather(self.describe(collection), self.encoder.name())
            await self.check_model(target)
            (vector,) = await self.encode(target, [query], "query")
            # A large index of words takes seconds to make, so this is a job with its own deadline.
            await self.store.run(collection, lambda db: db.index_words(target))
            hits, uuid_count = await self.store.run(
                collection, lambda db: db.search(target, vector, query, limit)
            )
        except MissingCollectionError as error:
            return {**answer, "collections": error.names}, ()
        notes = [left_out_note(uuid_count)] if uuid_count else []
        if not target.has_words:
            notes.append(
                f"Collection {one_line(collection)} was made by an earlier version or another "
                "program, so only the meaning of contents was searched. Run `standards-mcp memory "
                "reembed` for it to search titles, previews, tags and single words, too."
            )
        return {**answer, "count": len(hits), "results": _previews(hits)}, tuple(notes)

    async def fetch(self, doc_id: int, collection: str) -> DocumentAnswer:
        """Return a memory in full.

        Raises:
            NotFoundError: The memory or the collection does not exist.
        """
        documents = await self._retrieve(collection, [doc_id])
        if doc_id not in documents:
            raise missing_document(doc_id, collection)
        return _document_answer(documents[doc_id], collection)

    async def batch_fetch(self, references: Sequence[tuple[int, str]]) -> BatchAnswer:
        """Return memories in full, in the order of the references."""
        ids_by_collection: dict[str, dict[int, None]] = {}
        for doc_id, name in references:
            ids_by_collection.setdefault(name, {})[doc_id] = None
        stored: dict[tuple[int, str], DocumentAnswer] = {}
        for name, ids in ids_by_collection.items():
            with suppress(MissingCollectionError):
                for doc_id, document in (await self._retrieve(name, list(ids))).items():
                    stored[doc_id, name] = _document_answer(document, name)
        documents = [stored[reference] for reference in references if reference in stored]
        return {
            "count": len(documents),
            "documents": documents,
            "not_found": [
                {"doc_id": doc_id, "collection": name}
                for doc_id, name in dict.fromkeys(references)
                if (doc_id, name) not in stored
            ],
        }

    async def collections(self) -> CollectionsAnswer:
        """Return all collections, by name."""
        names = await self.store.run("", lambda db: db.names())
        entries = [await self.find(name) for name in names]  # None if it was deleted meanwhile
        return {
            "collections": [
                {"name": entry.name, "count": entry.count, "model": entry.model}
                for entry in entries
                if entry
            ]
        }

    async def read_all(self, name: str, *, with_payload: bool = True) -> list[Document]:
        """Return all memories, by id. Each page is a request with its own deadline.

        Raises:
            MissingCollectionError: The collection does not exist.
        """
        documents, offset = await self._page(name, None, with_payload=with_payload)
        while offset is not None:
            page, offset = await self._page(name, offset, with_payload=with_payload)
            documents += page
        return documents

    async def describe(self, collection: str) -> Collection:
        """Return the description of a collection.

        Raises:
            MissingCollectionError: The collection does not exist.
            ApiError: A `reembed` is copying the memories back, or was interrupted then.
        """
        entry = await self.find(collection)
        if entry is None or entry.reembed_source == collection:
            copy = await self.copy_of(collection)
            if copy is not None and (entry is None or copy.form == entry.form):
                raise ApiError(
                    f"Collection {one_line(collection)} is being reembedded. If that was "
                    "interrupted, run `standards-mcp memory reembed` for it again."
                )
        if entry is None:
            names = await self.store.run("", lambda db: db.names())
            raise MissingCollectionError(collection, names)
        return entry

    async def find(self, collection: str) -> Collection | None:
        """Return the description of a collection, or None. Ignore an unfinished `reembed`."""
        with suppress(MissingCollectionError):
            return await self.store.run(collection, lambda db: db.describe(collection))
        return None

    async def copy_of(self, collection: str) -> Collection | None:
        """Return the copy that `reembed` made to replace a collection, or None."""
        copy = await self.find(collection + COPY_SUFFIX)
        return copy if copy and copy.reembed_source == collection else None

    async def create(self, name: str, reembed_source: str | None = None) -> Collection:
        """Create a collection for vectors of the encoder.

        Raises:
            InvalidInputError: The store does not accept the name.
        """
        model = await self.encoder.name()
        vectors = await self.encoder.encode(["memory"], "document")
        new = Collection(name, 0, model, vectors.shape[1], reembed_source, has_words=True)
        await self.store.run(name, lambda db: db.create(new))
        return new

    async def drop(self, collection: Collection) -> None:
        """Delete a collection with its memories, if it exists."""
        await self.store.run(collection.name, lambda db: db.drop(collection.name))

    async def count(self, collection: str) -> int:
        """Return the exact number of memories; the count of a description may be rough."""
        return await self.store.run(collection, lambda db: db.count(collection))

    async def check_model(self, collection: Collection) -> None:
        """Check that no other model than the encoder's is recorded for a collection.

        Raises:
            ApiError: Another model is recorded, or the vectors are not unnamed cosine vectors.
        """
        if collection.dimensions is None:
            raise ApiError(
                f"Collection '{one_line(collection.name)}' does not have one unnamed vector with "
                "the distance cosine. Import its memories into a new collection."
            )
        if collection.model not in (None, await self.encoder.name()):
            raise await self._model_mismatch(collection)

    async def encode(self, collection: Collection, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return vectors of texts for a collection.

        Raises:
            ApiError: The encoder's vectors have another length than the collection's.
        """
        vectors = await self.encoder.encode(texts, kind)
        if collection.dimensions != vectors.shape[1]:
            raise await self._model_mismatch(collection)
        return vectors

    async def add_vectors(
        self,
        collection: Collection,
        documents: Sequence[Document],
        unchanged_ids: Sequence[int],
        source: str,
    ) -> list[Point]:
        """Return memories with their vectors for a collection.

        Args:
            unchanged_ids: Memories whose vectors are reused.
            source: The name of the collection that has these vectors.

        Raises:
            ApiError: The encoder's vectors have another length than the collection's.
        """
        vectors = await self.store.run(source, lambda db: db.vectors(source, unchanged_ids))
        if changed := [document for document in documents if document.id not in vectors]:
            rows = await self.encode(collection, [*map(collection.text_of, changed)], "document")
            vectors |= {document.id: row for document, row in zip(changed, rows, strict=True)}
        return [(document, vectors[document.id]) for document in documents]

    async def _page(
        self, name: str, offset: object, *, with_payload: bool
    ) -> tuple[list[Document], object]:
        return await self.store.run(
            name, lambda db: db.page(name, offset, _PAGE, with_payload=with_payload)
        )

    async def _model_mismatch(self, collection: Collection) -> ApiError:
        name, vectors = await self.encoder.name(), await self.encoder.encode(["memory"], "query")
        return ApiError(
            f"Collection '{one_line(collection.name)}' holds vectors of "
            f"{collection.model or 'an unnamed model'} ({collection.dimensions}), the configured "
            f"model is {name} ({vectors.shape[1]}). Run `standards-mcp memory reembed` for this "
            "collection, or set [plugins.memory] model to the model of its vectors."
        )

    async def _retrieve(self, collection: str, ids: Sequence[int]) -> dict[int, Document]:
        documents: dict[int, Document] = {}
        with suppress(MissingCollectionError):
            documents = await self.store.run(collection, lambda db: db.retrieve(collection, ids))
        if len(documents) < len(ids):
            await self.describe(collection)  # raises if the missing ones may be in a copy
        return documents


@asynccontextmanager
async def open_memory(
    settings: MemorySettings, state_dir: Path, *, encoder_threads: int | None = None
) -> AsyncGenerator[Memory]:
    """Yield the memories of the settings. The first call opens the store; the end closes it.

    Args:
        encoder_threads: Number of threads of the built-in encoder; None for one per processor.
    """
    store: Store = (
        EmbeddedStore(settings, settings.path or str(default_folder(state_dir)))
        if settings.url is None
        else RemoteStore(settings.url, settings.api_key, settings.timeout)
    )
    try:
        yield Memory(store, Encoder(settings, encoder_threads))
    finally:
        await store.aclose()


def default_folder(state_dir: Path) -> Path:
    """Return the folder of the embedded store if the settings name none."""
    return state_dir / "qdrant"


def missing_document(doc_id: int, collection: str) -> NotFoundError:
    """Return the error for a memory that does not exist."""
    return NotFoundError(
        f"Document {doc_id} not found in collection {one_line(collection)}. Take the id from an "
        "answer of memory_search in this collection."
    )


def _document_answer(document: Document, collection: str) -> DocumentAnswer:
    return {
        "id": document.id,
        "collection": collection,
        "title": document.title,
        "preview": document.preview,
        "content": document.content,
        "tags": document.tags,
    }


def _previews(hits: Sequence[tuple[Document, float]]) -> list[Preview]:
    previews: list[Preview] = [
        {
            "id": document.id,
            "title": document.title,
            "preview": document.preview,
            "score": round(score, _DIGITS),
        }
        for document, score in hits
    ]
    return sorted(previews, key=lambda preview: (-preview["score"], preview["id"]))
