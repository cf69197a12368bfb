"""Make the vectors of a collection anew: for another model, or so that searches match words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from standards_mcp import ApiError

from .records import Document, Point, Vectors
from .service import Memory
from .store import MissingCollectionError
from .store import points as point_jobs
from .store.collections import REEMBEDDED, Collection
from .texts.markdown import one_line

_BATCH: Final = 64


async def reembed(memory: Memory, name: str, progress: Callable[[int, int], None]) -> Collection:
    """Give the memories of a collection vectors of the encoder's model.

    A second collection is filled, then takes the place of the first. It is complete before the
    first is deleted, so whoever is ended at any point goes on by the same call.

    Args:
        progress: Told how many are done, of how many.

    Raises:
        MissingCollectionError: There is no such collection.
        ApiError: It has memories that would be lost, or another collection is in the way.
        ToolError: The store or the encoder fails.
    """
    async with memory.store.held():
        model = await memory.encoder.name()
        old, new = await _found(memory, name), await _second(memory, name)
        if old is None and new is None:
            await memory.describe(name)  # which says what there is
        if new is not None and (old is None or old.form == new.form):
            # An earlier call has deleted the first, so the second alone is complete.
            await _take_over(memory, name)
            old, new = await _found(memory, name), None
        if old is not None and old.form != (model, True):
            await _fill(memory, old, new, progress)
            await _drop(memory, name)
            await _take_over(memory, name)
        elif new is not None:
            await _drop(memory, new.name)  # of a model that is no longer wanted
        return await memory.describe(name)


async def _second(memory: Memory, name: str) -> Collection | None:
    """Return the collection that an earlier call has begun to fill."""
    found = await _found(memory, name + REEMBEDDED)
    if found is not None and found.reembedded != name:
        raise ApiError(
            f"Collection {one_line(found.name)} is in the way: it was not made by reembed. Export "
            "and delete it first."
        )
    return found


async def _fill(
    memory: Memory, old: Collection, new: Collection | None, progress: Callable[[int, int], None]
) -> None:
    """Write all memories with new vectors into the second collection."""
    second = old.name + REEMBEDDED
    model = await memory.encoder.name()
    documents = await _read_all(memory, old.name)
    if (odd := await memory.count(old.name) - len(documents)) > 0:
        raise ApiError(
            f"Collection {one_line(old.name)} has {odd} memories whose ids are no numbers from 1; "
            "they would be lost. Move them to a collection of their own."
        )
    if new is not None and new.form != (model, True):
        await _drop(memory, second)
        new = None
    if new is None:
        vectors = await memory.encoder.encode(["memory"], "document")
        new = Collection(second, 0, model, vectors.shape[1], old.name, has_words=True)
        await memory.store.create(new)
    done = {each.id: each for each in await _read_all(memory, second)}
    if gone := done.keys() - {each.id for each in documents}:
        await memory.store.delete(second, [*gone])
    left = [each for each in documents if done.get(each.id) != each]
    for start in range(0, len(left), _BATCH):
        batch = left[start : start + _BATCH]
        texts = [each.embedded_text(has_words=True) for each in batch]
        vectors = await memory.encoder.encode(texts, "document")
        points = [
            Point(each.id, row, each.payload) for each, row in zip(batch, vectors, strict=True)
        ]
        await _upsert(memory, new, points)
        progress(len(documents) - len(left) + start + len(batch), len(documents))


async def _take_over(memory: Memory, name: str) -> None:
    """Put what the second collection holds in place of the first."""
    new = await memory.describe(name + REEMBEDDED)
    first = await _found(memory, name)
    if first is None:
        first = replace(new, name=name, reembedded=name)
        await memory.store.create(first)
    documents = await _read_all(memory, new.name)
    for start in range(0, len(documents), _BATCH):
        batch = {each.id: each for each in documents[start : start + _BATCH]}
        vectors = await _vectors_of(memory, new.name, list(batch))
        points = [Point(each.id, vectors[each.id], each.payload) for each in batch.values()]
        await _upsert(memory, first, points)
    await _drop(memory, new.name)


async def _found(memory: Memory, name: str) -> Collection | None:
    try:
        return await memory.describe_any(name)
    except MissingCollectionError:
        return None


async def _read_all(memory: Memory, name: str) -> list[Document]:
    return [each async for each in memory.read_all(name)]


async def _vectors_of(memory: Memory, name: str, ids: list[int]) -> dict[int, Vectors]:
    return await memory.store.run(lambda client: point_jobs.vectors_of(client, name, ids))


async def _drop(memory: Memory, name: str) -> None:
    await memory.store.drop(name)


async def _upsert(memory: Memory, collection: Collection, points: list[Point]) -> None:
    await memory.store.upsert(collection, points)
