"""Jobs on memories: search, read, write and delete them in Qdrant."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, cast

from standards_mcp import ApiError
from standards_mcp_memory.records import Document, Point, Vectors
from standards_mcp_memory.schemas import Preview

from .collections import WORDS, Collection, is_server
from .words import fuse_scores, query_words, word_weights

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

    from .words import WordIndex

PAGE: Final = 1000
_PREVIEW_KEYS: Final = ["title", "preview"]
_DIGITS: Final = 3
_MIN_CANDIDATES: Final = 100
_EXTRA_CANDIDATES: Final = 20
_INSERT_ONLY_SINCE: Final = (1, 17)


Hits: TypeAlias = tuple[list[Preview], int]
"""The previews of a search, best first, and the number of hits left out because of UUIDs."""


def search(client: QdrantClient, name: str, vector: Vectors, limit: int) -> Hits:
    """Return the memories that are nearest to a vector."""
    return _hits(_query(client, name, limit, query=vector.tolist()))


def search_server(client: QdrantClient, name: str, vector: Vectors, query: str, limit: int) -> Hits:
    """Return the memories of a server that are nearest by meaning and words; Qdrant fuses both."""
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    words = query_words(query)
    if not words:
        return search(client, name, vector, limit)
    candidates = max(_MIN_CANDIDATES, 2 * limit)
    sparse = models.SparseVector(indices=words, values=[1.0] * len(words))
    lists = [
        models.Prefetch(query=vector.tolist(), limit=candidates),
        models.Prefetch(query=sparse, using=WORDS, limit=candidates),
    ]
    fusion = models.FusionQuery(fusion=models.Fusion.RRF)
    return _hits(_query(client, name, limit, prefetch=lists, query=fusion))


def search_embedded(
    client: QdrantClient, name: str, vector: Vectors, query: str, limit: int, index: WordIndex
) -> Hits:
    """Return the memories of an embedded store that are nearest by meaning and words."""
    candidates = limit + _EXTRA_CANDIDATES
    points = _query(client, name, candidates, query=vector.tolist())
    documents = _by_id(points)
    cosines = {point.id: point.score for point in points if is_number_id(point.id)}
    words = index.scores(query_words(query), candidates, [*cosines])
    # Hits by words alone get the lowest cosine of the hits by vectors, because their own cosines
    # are not higher. Reading their vectors would take as long as the search.
    farthest = min(cosines.values(), default=0.0)
    scores = fuse_scores({**dict.fromkeys(words, farthest), **cosines}, words)
    best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:limit]
    documents |= retrieve(client, name, [*{*best} - documents.keys()], _PREVIEW_KEYS)
    best_documents = [documents[doc_id] for doc_id in best if doc_id in documents]
    uuid_count = sum(not is_number_id(point.id) for point in points[:limit])
    return _previews(best_documents, scores), uuid_count


def retrieve(
    client: QdrantClient, name: str, ids: Sequence[int], keys: list[str] | None = None
) -> dict[int, Document]:
    """Return the existing memories of these ids.

    Args:
        keys: The payload keys to read; None reads all.
    """
    if not ids:
        return {}
    rows = client.retrieve(name, ids=list(ids), with_payload=keys or True, with_vectors=False)
    return _by_id(rows)


def vectors_of(client: QdrantClient, name: str, ids: Sequence[int]) -> dict[int, Vectors]:
    """Return the vectors of memories."""
    import numpy as np  # noqa: PLC0415  - with the client

    if not ids:
        return {}
    vectors: dict[int, Vectors] = {}
    for row in client.retrieve(name, ids=list(ids), with_payload=False, with_vectors=True):
        dense = row.vector[""] if isinstance(row.vector, dict) else row.vector
        vectors[cast("int", row.id)] = np.asarray(dense, dtype=np.float32)
    return vectors


def find_equal(client: QdrantClient, name: str, title: str, content: str) -> Document | None:
    """Return a memory with this title and content, or None."""
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    # The stored hash does not help: other programs edit texts without updating it.
    texts = {"title": title, "content": content}
    same = models.Filter(
        must=[
            models.FieldCondition(key=key, match=models.MatchValue(value=text))
            for key, text in texts.items()
        ]
    )
    # Qdrant returns numbers before UUIDs, so the first row is enough.
    rows, _ = client.scroll(name, scroll_filter=same, limit=1, with_payload=True)
    return next(iter(_by_id(rows).values()), None)


def page(
    client: QdrantClient, name: str, offset: Any, limit: int, *, with_payload: bool = True
) -> tuple[list[Document], Any]:
    """Return a page of the memories of a collection, by id, and the offset of the next page.

    Args:
        offset: The offset of this page; None for the first page. The last page returns None.
    """
    rows, next_offset = client.scroll(
        name, limit=limit, offset=offset, with_payload=with_payload, with_vectors=False
    )
    return list(_by_id(rows).values()), next_offset


def upsert(
    client: QdrantClient, collection: Collection, points: Sequence[Point]
) -> dict[int, Document]:
    """Write memories in place of memories with the same ids, and return them."""
    _write(client, collection, points)
    return {point.id: Document(point.id, point.payload) for point in points}


def insert(
    client: QdrantClient, collection: Collection, points: Sequence[Point]
) -> dict[int, Document]:
    """Write memories whose ids are free, and return the memories that have these ids now.

    If another writer has taken an id meanwhile, Qdrant ignores the point, and the other writer's
    memory is returned for the id.

    Raises:
        ApiError: The server is too old to write only where an id is free.
    """
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    if points and is_server(client):
        _check_version(client)
    # With a weaker ordering, replicas could apply two writes in different orders.
    strong, only_free = models.WriteOrdering.STRONG, models.UpdateMode.INSERT_ONLY
    _write(client, collection, points, ordering=strong, update_mode=only_free)
    return retrieve(client, collection.name, [point.id for point in points])


def delete(client: QdrantClient, collection: Collection, ids: Sequence[int]) -> dict[int, None]:
    """Delete memories, and return the ids that existed."""
    documents = retrieve(client, collection.name, ids)
    existing_ids = [doc_id for doc_id in dict.fromkeys(ids) if doc_id in documents]
    if existing_ids:
        with one_sync(client, collection.name):
            client.delete(collection.name, points_selector=[*existing_ids], wait=True)
    return dict.fromkeys(existing_ids)


def _query(
    client: QdrantClient, name: str, limit: int, **query: Any
) -> Sequence[models.ScoredPoint]:
    return client.query_points(
        name, limit=limit, with_payload=_PREVIEW_KEYS, with_vectors=False, **query
    ).points


def _write(
    client: QdrantClient, collection: Collection, points: Sequence[Point], **options: Any
) -> None:
    if points:
        structs = [_struct(client, collection, point) for point in points]
        with one_sync(client, collection.name):
            client.upsert(collection.name, points=structs, wait=True, **options)


def _check_version(client: QdrantClient) -> None:
    version = client.info().version
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < _INSERT_ONLY_SINCE:
        raise ApiError(
            f"The Qdrant server is version {version}. To store new memories, update it to 1.17 or "
            "later: earlier versions let two writers overwrite each other's memories."
        )


def _struct(client: QdrantClient, collection: Collection, point: Point) -> models.PointStruct:
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    if client.init_options.get("path") is not None:
        # Without validation the vector is stored as an array. A list would take twice the memory
        # and four times as long to open. Other readers of the store accept both.
        return models.PointStruct.model_construct(
            id=point.id, vector={"": point.vector}, payload=dict(point.payload)
        )
    dense = point.vector.tolist()
    if not (is_server(client) and collection.has_words):
        return models.PointStruct(id=point.id, vector=dense, payload=dict(point.payload))
    words = word_weights(Document(point.id, point.payload).text)
    sparse = models.SparseVector(indices=[*words], values=[*words.values()])
    vectors = {"": dense, WORDS: sparse}
    return models.PointStruct(id=point.id, vector=vectors, payload=dict(point.payload))


def _hits(points: Sequence[models.ScoredPoint]) -> Hits:
    scores = {point.id: point.score for point in points if is_number_id(point.id)}
    return _previews(_by_id(points).values(), scores), len(points) - len(scores)


def _previews(documents: Iterable[Document], scores: Mapping[int, float]) -> list[Preview]:
    previews: list[Preview] = [
        {
            "id": document.id,
            "title": document.title,
            "preview": document.preview,
            "score": round(scores[document.id], _DIGITS),
        }
        for document in documents
    ]
    return sorted(previews, key=lambda preview: (-preview["score"], preview["id"]))


def _by_id(rows: Sequence[models.Record | models.ScoredPoint]) -> dict[int, Document]:
    return {row.id: Document(row.id, row.payload or {}) for row in rows if is_number_id(row.id)}


def is_number_id(identifier: object) -> TypeGuard[int]:
    """Return True if an id is a number from 1; other programs also use UUIDs."""
    return isinstance(identifier, int) and identifier >= 1


@contextmanager
def one_sync(client: QdrantClient, name: str) -> Generator[None]:
    """Write all points of this context to the disk with one sync, in an embedded store.

    The client commits each point by itself. In SQLite's write-ahead log, each commit survives a
    killed process, and the checkpoint at the end makes all of them survive a power failure.
    """
    connection = _connection(client, name)
    if connection is None:
        yield
        return
    # With a sync for each point, 100 to 700 memories a second were written instead of 900 to 1,400.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA synchronous = FULL")


def _connection(client: QdrantClient, name: str) -> sqlite3.Connection | None:
    """Return the database of a collection; None for a server, or another version of the client."""
    collections: object = getattr(getattr(client, "_client", None), "collections", None)
    by_name = cast("dict[str, object]", collections) if isinstance(collections, dict) else {}
    storage: object = getattr(by_name.get(name), "storage", None)
    connection: object = getattr(storage, "storage", None)
    return connection if isinstance(connection, sqlite3.Connection) else None
