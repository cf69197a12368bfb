"""Read and write collections of Qdrant. This module takes seconds to import."""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final, TypeGuard, cast

import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from standards_mcp import ApiError, InvalidInputError
from standards_mcp.files import restrict

from .records import Collection, Document, Hits, MissingCollectionError, Point, Vectors
from .words import WordIndex, fuse_scores, query_words, word_weights

WORDS: Final = "words"
"""The name of the sparse vectors of a server."""
_MODEL_KEY: Final = "standards_mcp_model"
_REEMBED_KEY: Final = "standards_mcp_reembedded"
_SEARCH_KEY: Final = "standards_mcp_search"
_PREVIEW_KEYS: Final = ["title", "preview"]
_MIN_CANDIDATES: Final = 100
_EXTRA_CANDIDATES: Final = 20
_INSERT_ONLY_SINCE: Final = (1, 17)
_NOT_FOUND: Final = 404


class Database:
    """Collections of a Qdrant client, by name.

    All methods raise the errors of the client; `missing_collection_errors` converts one of them.

    Args:
        folder: The folder of an embedded store; None for a server, or a store in memory.
    """

    def __init__(self, client: QdrantClient, folder: Path | None = None) -> None:
        self.client, self._folder = client, folder
        self._is_server = client.init_options.get("url") is not None
        self._word_indexes: dict[str, WordIndex] = {}

    @classmethod
    def open(cls, folder: Path | None = None, **options: Any) -> Database:
        """Open a client: for a folder, or with the client's options *location* or *url*."""
        if folder:
            options["path"] = str(folder)
        return cls(QdrantClient(force_disable_check_same_thread=True, **options), folder)

    def names(self) -> list[str]:
        """Return the names of all collections, sorted."""
        return sorted(entry.name for entry in self.client.get_collections().collections)

    @contextmanager
    def missing_collection_errors(self, name: str) -> Generator[None]:
        """Raise the client's error for a missing collection as `MissingCollectionError`."""
        try:
            yield
        except (UnexpectedResponse, ValueError) as error:
            status = error.status_code if isinstance(error, UnexpectedResponse) else None
            # Errors of the embedded store have no status.
            if status != _NOT_FOUND and str(error) != f"Collection {name} not found":
                raise
            raise MissingCollectionError(name, self.names()) from None

    def describe(self, name: str) -> Collection:
        """Return the description of a collection."""
        info = self.client.get_collection(name)
        metadata, vectors = info.config.metadata or {}, info.config.params.vectors
        model, reembed_source = metadata.get(_MODEL_KEY), metadata.get(_REEMBED_KEY)
        dimensions = None
        if isinstance(vectors, models.VectorParams) and vectors.multivector_config is None:
            dimensions = vectors.size if vectors.distance == models.Distance.COSINE else None
        return Collection(
            name=name,
            count=info.points_count or 0,
            model=model if isinstance(model, str) else None,
            dimensions=dimensions,
            reembed_source=reembed_source if isinstance(reembed_source, str) else None,
            # Within a collection, all vectors have one form of text: mixed ones would rank old
            # memories below new ones.
            has_words=metadata.get(_SEARCH_KEY) == WORDS,
        )

    def count(self, name: str) -> int:
        """Return the exact number of memories; the count of a server's description is rough."""
        return self.client.count(name, exact=True).count

    def create(self, collection: Collection) -> None:
        """Create a collection.

        Raises:
            InvalidInputError: The store does not accept the name.
        """
        metadata = {
            _MODEL_KEY: collection.model,
            _SEARCH_KEY: WORDS if collection.has_words else None,
            _REEMBED_KEY: collection.reembed_source,
        }
        size = collection.dimensions or 0
        words = {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        try:
            self.client.create_collection(
                collection.name,
                vectors_config=models.VectorParams(size=size, distance=models.Distance.COSINE),
                sparse_vectors_config=words if collection.has_words and self._is_server else None,
                metadata={key: value for key, value in metadata.items() if value is not None},
            )
        except JSONDecodeError:  # a ValueError too, but from the answer of a server
            raise
        except ValueError as error:
            raise InvalidInputError(f"collection: {error}. Choose another name.") from None
        if self._folder:  # Qdrant makes its files readable for all users
            restrict(self._folder)

    def drop(self, name: str) -> None:
        """Delete a collection with its memories, if it exists."""
        self._word_indexes.pop(name, None)
        self.client.delete_collection(name)

    def page(
        self, name: str, offset: Any, size: int, *, with_payload: bool = True
    ) -> tuple[list[Document], Any]:
        """Return a page of the memories of a collection, by id, and the offset of the next page.

        Args:
            offset: The offset of this page; None for the first page. The last page returns None.
        """
        rows, next_offset = self.client.scroll(
            name, limit=size, offset=offset, with_payload=with_payload
        )
        return list(_by_id(rows).values()), next_offset

    def retrieve(
        self, name: str, ids: Sequence[int], keys: list[str] | None = None
    ) -> dict[int, Document]:
        """Return the existing memories of these ids, with these keys of the payload or all."""
        return _by_id(self.client.retrieve(name, list(ids), keys or True) if ids else [])

    def vectors(self, name: str, ids: Sequence[int]) -> dict[int, Vectors]:
        """Return the vectors of memories."""
        rows = self.client.retrieve(name, list(ids), False, True) if ids else []
        rows_by_id = {cast("int", row.id): row.vector for row in rows}
        return {
            doc_id: np.asarray(row[""] if isinstance(row, dict) else row, np.float32)
            for doc_id, row in rows_by_id.items()
        }

    def find_equal(self, name: str, title: str, content: str) -> Document | None:
        """Return a memory with this title and content, or None."""
        # The stored hash does not help: other programs edit texts without updating it.
        texts = {"title": title, "content": content}
        conditions = [
            models.FieldCondition(key=key, match=models.MatchValue(value=text))
            for key, text in texts.items()
        ]
        # Qdrant returns numbers before UUIDs, so the first row is enough.
        rows, _ = self.client.scroll(name, models.Filter(must=[*conditions]), limit=1)
        return next(iter(_by_id(rows).values()), None)

    def upsert(self, collection: Collection, points: Sequence[Point], **options: Any) -> None:
        """Write memories in place of memories with the same ids."""
        if points:
            structs = [self._struct(collection, *point) for point in points]
            with self._change(collection.name) as index:
                self.client.upsert(collection.name, structs, **options)
                if index is not None:
                    stored = self.retrieve(collection.name, [document.id for document, _ in points])
                    index.change(stored)

    def insert(self, collection: Collection, points: Sequence[Point]) -> dict[int, Document]:
        """Write memories whose ids are free, and return the memories that have these ids now.

        If another writer has taken an id meanwhile, Qdrant ignores the point, and the other
        writer's memory is returned for the id.

        Raises:
            ApiError: The server is too old to write only where an id is free.
        """
        if points and self._is_server:
            version = self.client.info().version
            numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
            if numbers < _INSERT_ONLY_SINCE:
                raise ApiError(
                    f"The Qdrant server is version {version}. To store new memories, update it to "
                    "1.17 or later: earlier versions let two writers overwrite each other's "
                    "memories."
                )
        # With a weaker ordering, replicas could apply two writes in different orders.
        strong, only_free = models.WriteOrdering.STRONG, models.UpdateMode.INSERT_ONLY
        self.upsert(collection, points, ordering=strong, update_mode=only_free)
        return self.retrieve(collection.name, [document.id for document, _ in points])

    def delete(self, name: str, ids: Iterable[int]) -> list[int]:
        """Delete memories, and return the ids that existed."""
        existing = list(self.retrieve(name, list(dict.fromkeys(ids)), _PREVIEW_KEYS))
        if existing:
            with self._change(name) as index:
                self.client.delete(name, [*existing])
                if index is not None:
                    index.change(dict.fromkeys(existing))
        return existing

    def index_words(self, collection: Collection) -> None:
        """Make the word index of a collection of an embedded store, if it is missing."""
        name = collection.name
        if collection.has_words and not self._is_server and name not in self._word_indexes:
            # One page, because the client sorts all ids for each page.
            documents, _ = self.page(name, None, self.count(name) or 1)
            self._word_indexes[name] = WordIndex(documents)
            return_memory()

    def search(self, collection: Collection, vector: Vectors, query: str, limit: int) -> Hits:
        """Return the memories that are nearest to a query, by words, too, if the vectors have them.

        Args:
            vector: The embedding of the query.
        """
        name, words = collection.name, query_words(query)
        if collection.has_words and not self._is_server:
            return self._search_embedded(collection, vector, words, limit)
        if collection.has_words and words:
            return self.search_fused(name, vector, words, limit)
        return _hits(self._query(name, limit, query=vector.tolist()))

    def search_fused(self, name: str, vector: Vectors, words: list[int], limit: int) -> Hits:
        """Return the nearest memories of a server by meaning and words; Qdrant fuses both."""
        candidates = max(_MIN_CANDIDATES, 2 * limit)
        sparse = models.SparseVector(indices=words, values=[1.0] * len(words))
        lists = [
            models.Prefetch(query=vector.tolist(), limit=candidates),
            models.Prefetch(query=sparse, using=WORDS, limit=candidates),
        ]
        fusion = models.FusionQuery(fusion=models.Fusion.RRF)
        return _hits(self._query(name, limit, prefetch=lists, query=fusion))

    def _search_embedded(
        self, collection: Collection, vector: Vectors, words: list[int], limit: int
    ) -> Hits:
        name, candidates = collection.name, limit + _EXTRA_CANDIDATES
        self.index_words(collection)
        points = self._query(name, candidates, query=vector.tolist())
        cosines = {point.id: point.score for point in points if is_number_id(point.id)}
        matches = self._word_indexes[name].scores(words, candidates, [*cosines])
        # Hits by words alone get the lowest cosine of the hits by vectors, because their own
        # cosines are not higher. Reading their vectors would take as long as the search.
        farthest = min(cosines.values(), default=0.0)
        scores = fuse_scores({**dict.fromkeys(matches, farthest), **cosines}, matches)
        best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:limit]
        documents = _by_id(points)
        documents |= self.retrieve(name, [*{*best} - documents.keys()], _PREVIEW_KEYS)
        hits = [(documents[doc_id], scores[doc_id]) for doc_id in best if doc_id in documents]
        return hits, sum(not is_number_id(point.id) for point in points[:limit])

    def _query(self, name: str, limit: int, **query: Any) -> Sequence[models.ScoredPoint]:
        return self.client.query_points(
            name, limit=limit, with_payload=_PREVIEW_KEYS, with_vectors=False, **query
        ).points

    def _struct(
        self, collection: Collection, document: Document, vector: Vectors
    ) -> models.PointStruct:
        payload = dict(document.payload)
        if not self._is_server:
            # Without validation the vector is stored as an array. A list would take twice the
            # memory and four times as long to open. Other readers of the store accept both.
            return models.PointStruct.model_construct(
                id=document.id, vector={"": vector}, payload=payload
            )
        vectors: Any = vector.tolist()
        if collection.has_words:
            weights = word_weights(document.text)
            sparse = models.SparseVector(indices=[*weights], values=[*weights.values()])
            vectors = {"": vectors, WORDS: sparse}
        return models.PointStruct(id=document.id, vector=vectors, payload=payload)

    @contextmanager
    def _change(self, name: str) -> Generator[WordIndex | None]:
        """Write all points of this context to the disk with one sync, in an embedded store.

        Yield the word index to update. The client commits each point by itself. In SQLite's
        write-ahead log, each commit survives a killed process, and the checkpoint at the end makes
        all of them survive a power failure.
        """
        # The index is dropped first, because a failed change may have written some memories.
        index, connection = self._word_indexes.pop(name, None), self._connection(name)
        # With a sync for each point, 100 to 700 memories a second were written instead of 900 to
        # 1,400.
        if connection is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        try:
            yield index
            if index is not None:
                self._word_indexes[name] = index
        finally:
            if connection is not None:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("PRAGMA synchronous = FULL")

    def _connection(self, name: str) -> sqlite3.Connection | None:
        """Return the database of a collection; None for a server, or another client version."""
        collections: object = getattr(getattr(self.client, "_client", None), "collections", None)
        by_name = cast("dict[str, object]", collections) if isinstance(collections, dict) else {}
        storage = getattr(by_name.get(name), "storage", None)
        connection: object = getattr(storage, "storage", None)
        return connection if isinstance(connection, sqlite3.Connection) else None


def is_number_id(identifier: object) -> TypeGuard[int]:
    """Return True if an id is a number from 1; other programs also use UUIDs."""
    return isinstance(identifier, int) and identifier >= 1


def return_memory() -> None:
    """Return freed memory to the operating system, if the C library supports it."""
    # Opening a store or an encoder reads large files; their buffers would stay with the process.
    # With 20,000 memories, 60 MB.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _by_id(rows: Sequence[models.Record | models.ScoredPoint]) -> dict[int, Document]:
    return {row.id: Document(row.id, row.payload or {}) for row in rows if is_number_id(row.id)}


def _hits(points: Sequence[models.ScoredPoint]) -> Hits:
    documents = _by_id(points)
    hits = [(documents[point.id], point.score) for point in points if is_number_id(point.id)]
    return hits, len(points) - len(hits)
