"""Make new vectors for a collection: for another model, or so that searches match words.

A copy of the collection is filled, then replaces it. The copy is complete before the original is
deleted, so an interrupted call can be repeated at any point.
"""

from __future__ import annotations

from dataclasses import replace

from standards_mcp import ApiError

from .records import COPY_SUFFIX, Collection
from .rendering import one_line
from .service import Memory
from .writing import BATCH_SIZE, Progress


async def reembed(memory: Memory, name: str, progress: Progress) -> Collection:
    """Replace the vectors of a collection by vectors of the encoder's model.

    Args:
        progress: Called after each copied batch with the numbers of copied and of all memories.

    Raises:
        MissingCollectionError: The collection does not exist.
        ApiError: Memories would be lost, or another collection has the name of the copy.
        ToolError: The store or the encoder fails.
    """
    async with memory.store.held():
        target_form = (await memory.encoder.name(), True)
        original, copy = await memory.find(name), await memory.find(name + COPY_SUFFIX)
        if copy is not None and copy.reembed_source != name:
            raise ApiError(
                f"Collection {one_line(copy.name)} is in the way: it was not made by reembed. "
                "Export and delete it first."
            )
        if copy is not None and (original is None or original.form == copy.form):
            # An earlier call was interrupted while replacing the original. The copy is complete.
            await _take_over(memory, copy, original, progress)
            original, copy = await memory.describe(name), None
        if original is None:
            return await memory.describe(name)  # raises with the existing names
        if copy is not None and copy.form != target_form:  # an earlier call wanted another model
            await memory.drop(copy)
            copy = None
        if original.form != target_form:
            count = len(await memory.read_all(name))
            if (lost_count := await memory.count(name) - count) > 0:
                raise ApiError(
                    f"Collection {one_line(name)} has {lost_count} memories whose ids are not "
                    "numbers from 1; they would be lost. Move them to another collection."
                )
            if copy is None:
                copy = await memory.create(name + COPY_SUFFIX, reembed_source=name)
            await _copy(memory, original, copy, progress)
            await memory.drop(original)
            await _take_over(memory, copy, None, progress)
        return await memory.describe(name)


# An alias cannot have the name of a collection, and lists of collections do not contain aliases, so
# the memories are copied back.
async def _take_over(
    memory: Memory, copy: Collection, original: Collection | None, progress: Progress
) -> None:
    """Move the memories of the copy into the original, which is created if it is missing."""
    if original is None:
        name = copy.name.removesuffix(COPY_SUFFIX)
        original = new = replace(copy, name=name, reembed_source=name)
        await memory.store.run(name, lambda db: db.create(new))
    await _copy(memory, copy, original, progress)
    await memory.drop(copy)


async def _copy(memory: Memory, source: Collection, target: Collection, progress: Progress) -> None:
    """Make the memories of *target* equal to the memories of *source*."""
    documents = await memory.read_all(source.name)
    copied = {document.id: document for document in await memory.read_all(target.name)}
    extra_ids = copied.keys() - {document.id for document in documents}
    await memory.store.run(target.name, lambda db: db.delete(target.name, extra_ids))
    remaining = [document for document in documents if copied.get(document.id) != document]
    for start in range(0, len(remaining), BATCH_SIZE):
        batch = remaining[start : start + BATCH_SIZE]
        unchanged = [document.id for document in batch] if source.form == target.form else []
        points = await memory.add_vectors(target, batch, unchanged, source.name)
        await memory.store.run(target.name, lambda db, batch: db.upsert(target, batch), points)
        progress(len(documents) - len(remaining) + start + len(batch), len(documents))
