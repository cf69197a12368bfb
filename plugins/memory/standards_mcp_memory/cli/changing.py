"""Commands that delete and change."""

from __future__ import annotations

from dataclasses import replace

import click
from pydantic import ValidationError

from standards_mcp.commands import examples, print_text, progress_bar
from standards_mcp_memory.records import LARGEST_ID
from standards_mcp_memory.reembedding import reembed
from standards_mcp_memory.service import Memory
from standards_mcp_memory.settings import MemorySettings, check_spec
from standards_mcp_memory.store import MissingCollectionError
from standards_mcp_memory.store.collections import Collection
from standards_mcp_memory.writing import Writer

from .work import Place, check_kept, collection


def delete_command(place: Place) -> click.Command:
    """Return the command ``delete``."""

    @click.command(
        "delete", epilog=examples("memory delete notes 3 5", "memory delete notes --all")
    )
    @collection
    @click.argument("ids", metavar="ID...", nargs=-1, type=click.IntRange(1, LARGEST_ID))
    @click.option("--all", "is_all", is_flag=True, help="Delete the collection.")
    @click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
    @click.pass_context
    def delete_memories(
        context: click.Context,
        collection: str,
        ids: tuple[int, ...],
        *,
        is_all: bool,
        is_sure: bool,
    ) -> None:
        """Delete memories of COLLECTION by their ids, or all of it."""
        if is_all == bool(ids):
            raise click.UsageError("Give ids, or --all.")
        if is_all:
            _delete_all(place, collection, is_sure=is_sure)
            return
        deleted = place.run(lambda memory: Writer(memory).delete(ids, collection))
        print_text(f"{len(deleted)} deleted")
        for missing in sorted(set(ids) - set(deleted)):
            print_text(f"Document {missing} not found in collection {collection}.", err=True)
        context.exit(int(len(deleted) < len(set(ids))))

    return delete_memories


def reembed_command(place: Place) -> click.Command:
    """Return the command ``reembed``."""

    @click.command("reembed", epilog=examples("memory reembed notes"))
    @collection
    @click.option("--model", help="The model, as the setting names it; else the configured one.")
    def reembed_memories(collection: str, *, model: str | None) -> None:
        """Make the vectors of COLLECTION anew: with another model, or to let searches match words.

        The same command goes on where one was ended.
        """
        check_kept(place.settings)
        other = place
        if model is not None:
            try:
                check_spec(model)
                given = {**place.settings.model_dump(), "model": model}
                settings = MemorySettings.model_validate(given)
            except ValueError as error:
                raise click.BadParameter(_reason(error), param_hint="--model") from None
            other = replace(place, settings=settings)
        with progress_bar("Encoding") as progress:
            done = other.run(lambda memory: reembed(memory, collection, progress))
        print_text(f"{done.count} memories of {collection} have vectors of {done.model}.")
        if model not in (None, place.settings.model):
            print_text(f"Now set [plugins.memory] model to {model}.")

    return reembed_memories


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):  # whose text is several lines, with the settings
        return error.errors()[0]["msg"].removeprefix("Value error, ")
    return str(error)


def _delete_all(place: Place, collection: str, *, is_sure: bool) -> None:
    count = max(each.count for each in place.run(lambda memory: _parts(memory, collection)))
    if not is_sure:
        click.confirm(f"Delete {collection} with its {count} memories?", abort=True, err=True)
    place.run(lambda memory: _drop(memory, collection))
    print_text(f"{count} deleted")


async def _drop(memory: Memory, collection: str) -> None:
    async with memory.store.held():
        for each in await _parts(memory, collection):
            await memory.store.drop(each.name)


async def _parts(memory: Memory, collection: str) -> list[Collection]:
    """Return the collection and what an ended `reembed` has left of it; one may be missing.

    Raises:
        MissingCollectionError: Both are.
    """
    second = await memory.second(collection)
    try:
        first = await memory.describe_any(collection)
    except MissingCollectionError:
        if second is None:
            raise
        return [second]
    return [first] if second is None else [first, second]
