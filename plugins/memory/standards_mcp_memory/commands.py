"""Commands that list, show, search, delete and reembed memories, and their `MemoryLocation`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import click
from pydantic import TypeAdapter, ValidationError

from standards_mcp import InvalidInputError
from standards_mcp.commands import Report, examples, print_text, progress_bar, reports

from . import schemas
from .records import Collection, Document
from .reembedding import reembed
from .rendering import PLAIN, one_line, render_document, render_search
from .service import Memory, open_memory
from .settings import IN_MEMORY, MemorySettings
from .writing import Writer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemoryLocation:
    """The settings and the state folder that locate the memories."""

    settings: MemorySettings
    state_dir: Path

    def run(self, work: Callable[[Memory], Awaitable[T]]) -> T:
        """Open the memories, and return the result of *work* on them."""

        async def run() -> T:
            async with open_memory(self.settings, self.state_dir) as memory:
                return await work(memory)

        return anyio.run(run)

    def check_persistent(self) -> None:
        """Check that written memories outlive the command.

        Raises:
            InvalidInputError: The store is in memory.
        """
        if self.settings.url is None and self.settings.path == IN_MEMORY:
            raise InvalidInputError(
                "Nothing would be kept: [plugins.memory] path is :memory:. Name a folder."
            )

    def bind(self, command: click.Command) -> click.Command:
        """Return a copy of a command that gets this location by `pass_location`."""
        result = copy(command)
        result.context_settings = {**command.context_settings, "obj": self}
        return result


def checked(kind: Any) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback of click that checks a value like the argument of a tool."""
    adapter = TypeAdapter[Any](kind)

    def check(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            raise click.BadParameter(schemas.first_error(error)) from None

    return check


async def read_complete(memory: Memory, collection: str) -> list[Document]:
    """Return all memories of a collection, unless a `reembed` is replacing it.

    Raises:
        MissingCollectionError: The collection does not exist.
        ApiError: A `reembed` is replacing the collection.
    """
    await memory.describe(collection)
    return await memory.read_all(collection)


pass_location: Final = click.make_pass_decorator(MemoryLocation)
collection_argument: Final = click.argument("collection", callback=checked(schemas.CollectionName))


@click.command("list", epilog=examples("memory list", "memory list notes"))
@click.argument("collection", required=False, callback=checked(schemas.CollectionName | None))
@pass_location
@reports
def list_memories(location: MemoryLocation, collection: str | None) -> Report:
    """List the collections, or the memories of COLLECTION."""
    if collection is None:
        answer = location.run(Memory.collections)
        return Report(answer, lambda: _collections_text(answer), int(not answer["collections"]))
    rows = [
        {"id": document.id, "title": document.title, "preview": document.preview}
        for document in location.run(lambda memory: read_complete(memory, collection))
    ]
    listing = {"collection": collection, "count": len(rows), "memories": rows}
    lines = [f"{row['id']}: {one_line(str(row['title']))}" for row in rows]
    text = "\n".join(lines) or f"Collection {collection} is empty."
    return Report(listing, lambda: text, int(not rows))


@click.command("show", epilog=examples("memory show notes 3"))
@collection_argument
@click.argument("identifier", metavar="ID", type=int, callback=checked(schemas.DocumentId))
@pass_location
@reports
def show_memory(location: MemoryLocation, collection: str, identifier: int) -> Report:
    """Print the memory of COLLECTION with this ID in full."""
    answer = location.run(lambda memory: memory.fetch(identifier, collection))
    return Report(answer, lambda: render_document(answer, PLAIN))


@click.command("search", epilog=examples('memory search notes "Which port?" --limit 3'))
@collection_argument
@click.argument("query", callback=checked(schemas.Query))
@click.option(
    "--limit",
    type=int,
    callback=checked(schemas.Limit),
    default=schemas.DEFAULT_RESULTS,
    help="The most previews, 1 to 100.",
)
@pass_location
@reports
def search_memories(location: MemoryLocation, collection: str, query: str, *, limit: int) -> Report:
    """Print previews of the memories of COLLECTION that are nearest to QUERY."""
    answer, notes = location.run(lambda memory: memory.search(query, collection, limit))
    text = render_search(answer, PLAIN)
    return Report(answer, lambda: text, int(not answer["results"]), notes)


@click.command("delete", epilog=examples("memory delete notes 3 5", "memory delete notes --all"))
@collection_argument
@click.argument(
    "ids", metavar="ID...", nargs=-1, type=int, callback=checked(tuple[schemas.DocumentId, ...])
)
@click.option("--all", "is_all", is_flag=True, help="Delete the collection.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation.")
@pass_location
@click.pass_context
def delete_memories(
    context: click.Context,
    location: MemoryLocation,
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
        versions = location.run(lambda memory: _versions(memory, collection))
        count = max(version.count for version in versions)
        if not is_sure:
            click.confirm(f"Delete {collection} with its {count} memories?", abort=True, err=True)
        location.run(lambda memory: _drop(memory, collection))
        print_text(f"{count} deleted")
        return
    deleted = location.run(lambda memory: Writer(memory).delete(ids, collection))
    print_text(f"{len(deleted)} deleted")
    missing_ids = sorted(set(ids) - set(deleted))
    for missing in missing_ids:
        print_text(f"Document {missing} not found in collection {collection}.", err=True)
    context.exit(int(bool(missing_ids)))


@click.command("reembed", epilog=examples("memory reembed notes"))
@collection_argument
@click.option("--model", help="The model, as in the setting; by default the configured one.")
@pass_location
def reembed_memories(location: MemoryLocation, collection: str, *, model: str | None) -> None:
    """Make new vectors for COLLECTION: with another model, or to let searches match words.

    To continue after an interruption, run the same command again.
    """
    location.check_persistent()
    settings = location.settings
    values = {**settings.model_dump(), "model": model or settings.model}
    try:
        target = replace(location, settings=MemorySettings.model_validate(values))
    except ValidationError as error:
        raise click.BadParameter(schemas.first_error(error), param_hint="--model") from None
    with progress_bar("Encoding") as progress:
        result = target.run(lambda memory: reembed(memory, collection, progress))
    print_text(f"{result.count} memories of {collection} have vectors of {result.model}.")
    if model not in (None, settings.model):
        print_text(f"Now set [plugins.memory] model to {model}.")


COLLECTION_COMMANDS: Final = (
    list_memories,
    show_memory,
    search_memories,
    delete_memories,
    reembed_memories,
)


def _collections_text(answer: schemas.CollectionsAnswer) -> str:
    lines = [
        f"{one_line(entry['name'])}: {entry['count']} memories, {entry['model'] or 'unnamed model'}"
        for entry in answer["collections"]
    ]
    return "\n".join(lines) or "No collection exists yet. Make one with `memory import`."


async def _drop(memory: Memory, name: str) -> None:
    async with memory.store.held():
        for version in await _versions(memory, name):
            await memory.drop(version)


async def _versions(memory: Memory, name: str) -> list[Collection]:
    """Return the collection and its unfinished copy by `reembed`, or the one that exists.

    Raises:
        MissingCollectionError: Neither exists.
    """
    versions = [await memory.find(name), await memory.copy_of(name)]
    return [version for version in versions if version] or [await memory.describe(name)]
