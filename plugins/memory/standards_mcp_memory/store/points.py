"""Jobs about memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from standards_mcp_memory.records import Document, Point, Vectors

from .collections import found
from .commits import one_sync

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

PAGE: Final = 1000
_SHOWN: Final = ["title", "preview"]


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
    """Return the memories next to a vector."""
    with found(client, name):
        answer = client.query_points(
            name, query=vector.tolist(), limit=limit, with_payload=_SHOWN, with_vectors=False
        )
    documents = [(_document(each), each.score) for each in answer.points]
    hits = [Hit(each.id, each.title, each.preview, score) for each, score in documents if each]
    return Hits(sorted(hits, key=lambda hit: (-hit.score, hit.id)), len(documents) - len(hits))


def retrieve(client: QdrantClient, name: str, ids: Sequence[int]) -> dict[int, Document]:
    """Return memories by their ids; those that there are."""
    with found(client, name):
        rows = client.retrieve(name, ids=list(ids), with_payload=True, with_vectors=False)
    return {each.id: each for each in map(_document, rows) if each}


def vectors_of(client: QdrantClient, name: str, ids: Sequence[int]) -> dict[int, Vectors]:
    """Return the vectors of memories."""
    import numpy as np  # noqa: PLC0415  - with the client

    with found(client, name):
        rows = client.retrieve(name, ids=list(ids), with_payload=False, with_vectors=True)
    return {
        each.id: np.asarray(each.vector, dtype=np.float32) for each in rows if is_number(each.id)
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


def page(client: QdrantClient, name: str, offset: Any, *, with_payload: bool) -> Page:
    """Return some of the memories of a collection, by id, and where the next ones begin.

    Args:
        offset: Where these begin; None for the first.
    """
    with found(client, name):
        rows, after = client.scroll(
            name, limit=PAGE, offset=offset, with_payload=with_payload, with_vectors=False
        )
    return Page([each for each in map(_document, rows) if each], after)


def upsert(client: QdrantClient, name: str, points: Sequence[Point]) -> None:
    """Write memories, in place of those with their ids."""
    with found(client, name), one_sync(client, name):
        client.upsert(name, points=[_struct(client, each) for each in points], wait=True)


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


def _struct(client: QdrantClient, point: Point) -> models.PointStruct:
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    is_embedded = "path" in client.init_options and client.init_options["path"] is not None
    if is_embedded:
        # It is stored as it is given, and a list of numbers would take twice the memory and four
        # times as long to open. It is read back by everyone who reads lists.
        return models.PointStruct.model_construct(
            id=point.id, vector={"": point.vector}, payload=dict(point.payload)
        )
    return models.PointStruct(
        id=point.id, vector=point.vector.tolist(), payload=dict(point.payload)
    )


def _document(row: models.Record | models.ScoredPoint) -> Document | None:
    payload: Mapping[str, Any] = row.payload or {}
    return Document(row.id, payload) if is_number(row.id) else None


def is_number(identifier: object) -> TypeGuard[int]:
    """Tell whether an id is a number; other programs also use UUIDs."""
    return isinstance(identifier, int) and identifier >= 1
