"""A collection with vectors of another model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .records import Document, Point, Vectors, text_of
from .service import Memory
from .store import MissingCollectionError
from .store import collections as collection_jobs
from .store import points as point_jobs
from .store.collections import Collection

_BATCH: Final = 64
_NEXT: Final = ".reembed"


async def reembed(memory: Memory, name: str, progress: Callable[[int, int], None]) -> Collection:
    """Give the memories of a collection vectors of the encoder's model.

    A second collection is filled, then takes the place of the first. It is complete before the
    first is deleted, so whoever is ended at any point goes on by the same call.

    Args:
        progress: Told how many are done, of how many.

    Raises:
        MissingCollectionError: There is no such collection.
        ToolError: The store or the encoder fails.
    """
    async with memory.store.held():
        model = await memory.encoder.name()
        old, new = await _found(memory, name), await _found(memory, name + _NEXT)
        if old is None and new is None:
            await memory.describe(name)  # which says what there is
        if old is not None and old.model != model:
            await _fill(memory, name, new, progress)
            await _drop(memory, name)
        if await _found(memory, name + _NEXT) is not None:
            await _take_over(memory, name)
        return await memory.describe(name)


async def _fill(
    memory: Memory, name: str, new: Collection | None, progress: Callable[[int, int], None]
) -> None:
    """Write all memories with new vectors into the second collection."""
    model = await memory.encoder.name()
    if new is not None and new.model != model:
        await _drop(memory, new.name)
        new = None
    if new is None:
        vectors = await memory.encoder.encode(["memory"], "document")
        await _create(memory, name + _NEXT, model, vectors.shape[1])
    documents = await _read_all(memory, name)
    done = {each.id: each for each in await _read_all(memory, name + _NEXT)}
    left = [each for each in documents if done.get(each.id) != each]
    for start in range(0, len(left), _BATCH):
        batch = left[start : start + _BATCH]
        texts = [text_of(each.title, each.content) for each in batch]
        vectors = await memory.encoder.encode(texts, "document")
        points = [
            Point(each.id, row, each.payload) for each, row in zip(batch, vectors, strict=True)
        ]
        await _upsert(memory, name + _NEXT, points)
        progress(len(documents) - len(left) + start + len(batch), len(documents))


async def _take_over(memory: Memory, name: str) -> None:
    """Put what the second collection holds in place of the first."""
    new = await memory.describe(name + _NEXT)
    if await _found(memory, name) is None and new.model and new.dimensions:
        await _create(memory, name, new.model, new.dimensions)
    documents = await _read_all(memory, new.name)
    for start in range(0, len(documents), _BATCH):
        batch = {each.id: each for each in documents[start : start + _BATCH]}
        vectors = await _vectors_of(memory, new.name, list(batch))
        points = [Point(each.id, vectors[each.id], each.payload) for each in batch.values()]
        await _upsert(memory, name, points)
    await _drop(memory, new.name)


async def _found(memory: Memory, name: str) -> Collection | None:
    try:
        return await memory.describe(name)
    except MissingCollectionError:
        return None


async def _read_all(memory: Memory, name: str) -> list[Document]:
    return [each async for each in memory.read_all(name)]


async def _vectors_of(memory: Memory, name: str, ids: list[int]) -> dict[int, Vectors]:
    return await memory.store.run(lambda client: point_jobs.vectors_of(client, name, ids))


async def _create(memory: Memory, name: str, model: str, dimensions: int) -> None:
    await memory.store.run(lambda client: collection_jobs.create(client, name, model, dimensions))


async def _drop(memory: Memory, name: str) -> None:
    await memory.store.run(lambda client: collection_jobs.drop(client, name))


async def _upsert(memory: Memory, name: str, points: list[Point]) -> None:
    await memory.store.run(lambda client: point_jobs.upsert(client, name, points))
