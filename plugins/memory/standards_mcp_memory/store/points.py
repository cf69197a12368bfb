"""Jobs about memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard, cast

from standards_mcp import ApiError
from standards_mcp_memory.records import Document, Point, Vectors
from standards_mcp_memory.texts.words import query_words, word_weights

from .collections import WORDS, Collection, found, is_server
from .commits import one_sync
from .fusion import fused

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

    from .words import WordIndex

PAGE: Final = 1000
_LARGE_PAGE: Final = 5000
_SHOWN: Final = ["title", "preview"]
_DIGITS: Final = 3
_CANDIDATES: Final = 100
_MORE_CANDIDATES: Final = 20
_INSERT_ONLY_SINCE: Final = (1, 17)


class Hit(NamedTuple):
    """A memory that a search has found, without its content."""

    id: int
    title: str
    preview: str
    score: float


class Hits(NamedTuple):
    """What a search has found, best first, and how many of other programs' ids were left out."""

    hits: list[Hit]
    odd: int


class Page(NamedTuple):
    """Some memories; *after* is where the next ones begin, None after the last."""

    documents: list[Document]
    after: Any


def search(client: QdrantClient, name: str, vector: Vectors, limit: int) -> Hits:
    """Return the memories that are nearest to a vector."""
    with found(client, name):
        answer = client.query_points(
            name, query=vector.tolist(), limit=limit, with_payload=_SHOWN, with_vectors=False
        )
    return _hits(answer.points)


def search_server(client: QdrantClient, name: str, vector: Vectors, query: str, limit: int) -> Hits:
    """Return the memories of a server that are nearest by meaning and words, fused by Qdrant."""
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    words = query_words(query)
    if not words:
        return search(client, name, vector, limit)
    depth = max(_CANDIDATES, 2 * limit)
    sparse = models.SparseVector(indices=words, values=[1.0] * len(words))
    with found(client, name):
        answer = client.query_points(
            name,
            prefetch=[
                models.Prefetch(query=vector.tolist(), limit=depth),
                models.Prefetch(query=sparse, using=WORDS, limit=depth),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=limit,
            with_payload=_SHOWN,
            with_vectors=False,
        )
    return _hits(answer.points)


def search_embedded(
    client: QdrantClient, name: str, vector: Vectors, query: str, limit: int, index: WordIndex
) -> Hits:
    """Return the memories of an embedded store that are nearest by meaning and words."""
    depth = limit + _MORE_CANDIDATES
    with found(client, name):
        answer = client.query_points(
            name, query=vector.tolist(), limit=depth, with_payload=_SHOWN, with_vectors=False
        )
    documents = {each.id: each for each in map(_document, answer.points) if each}
    cosines = {each.id: each.score for each in answer.points if is_number(each.id)}
    words = index.scores(query_words(query), depth, [*cosines])
    # Vectors are not read for the memories that only words have found: it would take as long as the
    # search. They cannot be nearer than the last of those that vectors have found.
    farthest = min(cosines.values(), default=0.0)
    scores = fused({**dict.fromkeys(words, farthest), **cosines}, words)
    best = sorted(scores, key=lambda each: (-scores[each], each))[:limit]
    if missing := [each for each in best if each not in documents]:
        documents |= retrieve(client, name, missing, _SHOWN)
    hits = [_hit(documents[each], scores[each]) for each in best if each in documents]
    return Hits(_ordered(hits), sum(not is_number(each.id) for each in answer.points[:limit]))


def retrieve(
    client: QdrantClient, name: str, ids: Sequence[int], keys: list[str] | None = None
) -> dict[int, Document]:
    """Return the memories with these ids, without the ids that do not exist.

    Args:
        keys: The keys of their payloads to read; None reads all.
    """
    if not ids:
        return {}
    with found(client, name):
        rows = client.retrieve(name, ids=list(ids), with_payload=keys or True, with_vectors=False)
    return {each.id: each for each in map(_document, rows) if each}


def vectors_of(client: QdrantClient, name: str, ids: Sequence[int]) -> dict[int, Vectors]:
    """Return the vectors of memories."""
    import numpy as np  # noqa: PLC0415  - with the client

    if not ids:
        return {}
    with found(client, name):
        rows = client.retrieve(name, ids=list(ids), with_payload=False, with_vectors=True)
    return {
        each.id: np.asarray(_dense(each.vector), dtype=np.float32)
        for each in rows
        if is_number(each.id)
    }


def twin(client: QdrantClient, name: str, title: str, content: str) -> Document | None:
    """Return the memory that has this title and this content, if there is one."""
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    # Not by the stored hash: other programs write none, and leave it when they edit a text.
    same = models.Filter(must=[_is("title", title), _is("content", content)])
    with found(client, name):
        # Ids that are numbers come first.
        rows, _ = client.scroll(name, scroll_filter=same, limit=1, with_payload=True)
    return next((each for each in map(_document, rows) if each), None)


def page(
    client: QdrantClient, name: str, offset: Any, *, with_payload: bool, limit: int = PAGE
) -> Page:
    """Return some of the memories of a collection, by id, and where the next ones begin.

    Args:
        offset: Where these begin; None for the first.
        limit: How many to return.
    """
    with found(client, name):
        rows, after = client.scroll(
            name, limit=limit, offset=offset, with_payload=with_payload, with_vectors=False
        )
    return Page([each for each in map(_document, rows) if each], after)


def read_all(client: QdrantClient, name: str) -> Iterator[Document]:
    """Yield all memories of a collection of an embedded store, by id."""
    offset: Any = None
    while True:
        # The store sorts all ids for each page.
        read = page(client, name, offset, with_payload=True, limit=_LARGE_PAGE)
        yield from read.documents
        if (offset := read.after) is None:
            return


def upsert(client: QdrantClient, collection: Collection, points: Sequence[Point]) -> None:
    """Write memories, in place of those with their ids."""
    if not points:
        return
    structs = [_struct(client, collection, each) for each in points]
    with found(client, collection.name), one_sync(client, collection.name):
        client.upsert(collection.name, points=structs, wait=True)


def insert(
    client: QdrantClient, collection: Collection, points: Sequence[Point]
) -> dict[int, Document]:
    """Write memories whose ids are free, and return the memories that have these ids now.

    Another writer may have taken an id since it was chosen. Qdrant then ignores this point, and the
    other's memory is returned for the id.

    Raises:
        ApiError: The server is too old to write only where an id is free.
    """
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    if not points:
        return {}
    if is_server(client):
        _check_version(client)
    structs = [_struct(client, collection, each) for each in points]
    with found(client, collection.name), one_sync(client, collection.name):
        client.upsert(
            collection.name,
            points=structs,
            wait=True,
            # Otherwise replicas may take two writes in different orders.
            ordering=models.WriteOrdering.STRONG,
            update_mode=models.UpdateMode.INSERT_ONLY,
        )
    return retrieve(client, collection.name, [each.id for each in points])


def delete(client: QdrantClient, name: str, ids: Sequence[int]) -> list[int]:
    """Delete memories, and return the ids of those that there were."""
    known = retrieve(client, name, ids)
    there = [each for each in dict.fromkeys(ids) if each in known]
    if there:
        with one_sync(client, name):
            client.delete(name, points_selector=[*there], wait=True)
    return there


def _is(key: str, text: str) -> models.Filter:
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    equal = models.FieldCondition(key=key, match=models.MatchValue(value=text))
    missing = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
    return models.Filter(should=[equal] if text else [equal, missing])


def _check_version(client: QdrantClient) -> None:
    version = client.info().version
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if found < _INSERT_ONLY_SINCE:
        raise ApiError(
            f"The Qdrant server is version {version}. To store new memories, update it to 1.17 or "
            "later: earlier versions let two writers overwrite each other's memories."
        )


def _struct(client: QdrantClient, collection: Collection, point: Point) -> models.PointStruct:
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    if client.init_options.get("path") is not None:
        # It is stored as it is given, and a list of numbers would take twice the memory and four
        # times as long to open. It is read back by everyone who reads lists.
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


def _dense(vector: Any) -> Any:
    return cast("dict[str, Any]", vector)[""] if isinstance(vector, dict) else vector


def _hits(points: Sequence[models.ScoredPoint]) -> Hits:
    documents = [(_document(each), each.score) for each in points]
    hits = [_hit(document, score) for document, score in documents if document]
    return Hits(_ordered(hits), len(documents) - len(hits))


def _hit(document: Document, score: float) -> Hit:
    return Hit(document.id, document.title, document.preview, round(score, _DIGITS))


def _ordered(hits: Sequence[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _document(row: models.Record | models.ScoredPoint) -> Document | None:
    payload: Mapping[str, Any] = row.payload or {}
    return Document(row.id, payload) if is_number(row.id) else None


def is_number(identifier: object) -> TypeGuard[int]:
    """Tell whether an id is a number; other programs also use UUIDs."""
    return isinstance(identifier, int) and identifier >= 1
