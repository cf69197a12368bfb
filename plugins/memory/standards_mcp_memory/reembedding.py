"""Make new vectors for a collection: for another model, or so that searches match words.

A copy of the collection is filled, then replaces it. The copy is complete before the original is
deleted, so an interrupted call can be repeated at any point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from standards_mcp import ApiError

from .records import Document, Point, Vectors
from .rendering import one_line
from .service import Memory
from .store import points as point_jobs
from .store.collections import REEMBEDDED, Collection, MissingCollectionError

_BATCH: Final = 64


async def reembed(memory: Memory, name: str, progress: Callable[[int, int], None]) -> Collection:
    """Give the memories of a collection vectors of the encoder's model.

    Args:
        progress: Called with the number of encoded memories, and of all memories.

    Raises:
        MissingCollectionError: The collection does not exist.
        ApiError: It has memories that would be lost, or another collection has the copy's name.
        ToolError: The store or the encoder fails.
    """
    async with memory.store.held():
        model = await memory.encoder.name()
        original, copy = await _describe(memory, name), await _describe_copy(memory, name)
        if original is None and copy is None:
            await memory.describe(name)  # raises with the existing names
        if copy is not None and (original is None or original.form == copy.form):
            # An earlier call has deleted the original, so the copy alone is complete.
            await _take_over(memory, name)
            original, copy = await _describe(memory, name), None
        if original is not None and original.form != (model, True):
            await _fill(memory, original, copy, progress)
            await _drop(memory, name)
            await _take_over(memory, name)
        elif copy is not None:
            await _drop(memory, copy.name)  # an earlier call wanted another model
        return await memory.describe(name)


async def _describe_copy(memory: Memory, name: str) -> Collection | None:
    copy = await _describe(memory, name + REEMBEDDED)
    if copy is not None and copy.reembedded != name:
        raise ApiError(
            f"Collection {one_line(copy.name)} is in the way: it was not made by reembed. Export "
            "and delete it first."
        )
    return copy


async def _fill(
    memory: Memory,
    original: Collection,
    copy: Collection | None,
    progress: Callable[[int, int], None],
) -> None:
    """Write all memories with new vectors into the copy."""
    copy_name = original.name + REEMBEDDED
    model = await memory.encoder.name()
    documents = await _read_all(memory, original.name)
    if (odd_ids := await memory.count(original.name) - len(documents)) > 0:
        raise ApiError(
            f"Collection {one_line(original.name)} has {odd_ids} memories whose ids are not "
            "numbers from 1; they would be lost. Move them to another collection."
        )
    if copy is not None and copy.form != (model, True):
        await _drop(memory, copy_name)
        copy = None
    if copy is None:
        vectors = await memory.encoder.encode(["memory"], "document")
        copy = Collection(copy_name, 0, model, vectors.shape[1], original.name, has_words=True)
        await memory.store.create(copy)
    copied = {document.id: document for document in await _read_all(memory, copy_name)}
    if gone := copied.keys() - {document.id for document in documents}:
        await memory.store.delete(copy_name, [*gone])
    remaining = [document for document in documents if copied.get(document.id) != document]
    for start in range(0, len(remaining), _BATCH):
        batch = remaining[start : start + _BATCH]
        texts = [document.embedded_text(has_words=True) for document in batch]
        vectors = await memory.encoder.encode(texts, "document")
        points = [
            Point(document.id, row, document.payload)
            for document, row in zip(batch, vectors, strict=True)
        ]
        await _upsert(memory, copy, points)
        progress(len(documents) - len(remaining) + start + len(batch), len(documents))


# An alias cannot have the name of a collection, and lists of collections do not contain aliases, so
# the memories are copied back.
async def _take_over(memory: Memory, name: str) -> None:
    """Move the memories of the copy into the original, which is created if it is missing."""
    copy = await memory.describe(name + REEMBEDDED)
    original = await _describe(memory, name)
    if original is None:
        original = replace(copy, name=name, reembedded=name)
        await memory.store.create(original)
    documents = await _read_all(memory, copy.name)
    for start in range(0, len(documents), _BATCH):
        batch = documents[start : start + _BATCH]
        vectors = await _vectors_of(memory, copy.name, [document.id for document in batch])
        points = [Point(document.id, vectors[document.id], document.payload) for document in batch]
        await _upsert(memory, original, points)
    await _drop(memory, copy.name)


async def _describe(memory: Memory, name: str) -> Collection | None:
    try:
        return await memory.describe_any(name)
    except MissingCollectionError:
        return None


async def _read_all(memory: Memory, name: str) -> list[Document]:
    return [document async for document in memory.read_all(name)]


async def _vectors_of(memory: Memory, name: str, ids: list[int]) -> dict[int, Vectors]:
    return await memory.store.run(lambda client: point_jobs.vectors_of(client, name, ids))


async def _drop(memory: Memory, name: str) -> None:
    await memory.store.drop(name)


async def _upsert(memory: Memory, collection: Collection, points: list[Point]) -> None:
    await memory.store.upsert(collection, points)
