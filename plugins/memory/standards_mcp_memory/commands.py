"""Commands that list, show, search, delete and reembed, and the `Place` that commands work on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import anyio
import click
from pydantic import ValidationError

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_result, print_text, progress_bar

from .records import LARGEST_ID
from .reembedding import reembed
from .rendering import document_for_terminal, one_line, previews_for_terminal
from .schemas import (
    LONGEST_QUERY,
    MOST_RESULTS,
    SHORTEST_QUERY,
    USUAL_RESULTS,
    CollectionsAnswer,
    check_name,
)
from .service import Memory, open_memory
from .settings import IN_MEMORY, MemorySettings, check_spec
from .store.collections import Collection, MissingCollectionError
from .writing import Writer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """The settings and the state folder that locate the memories."""

    settings: MemorySettings
    state_dir: Path

    def run(self, work: Callable[[Memory], Awaitable[T]]) -> T:
        """Open the memories, and return the result of *work* on them."""

        async def run() -> T:
            async with open_memory(self.settings, self.state_dir) as memory:
                return await work(memory)

        return anyio.run(run)

    def check_kept(self) -> None:
        """Check that written memories outlive the command.

        Raises:
            InvalidInputError: The store is in memory.
        """
        if self.settings.url is None and self.settings.path == IN_MEMORY:
            raise InvalidInputError(
                "Nothing would be kept: [plugins.memory] path is :memory:. Name a folder."
            )


def valid_name(
    _context: click.Context, _parameter: click.Parameter, name: str | None
) -> str | None:
    """Check the name of a collection; a callback of click."""
    try:
        return None if name is None else check_name(name)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


collection_argument: Final = click.argument("collection", callback=valid_name)


def collection_commands(place: Place) -> list[click.Command]:
    """Return the commands for collections and single memories."""
    return [
        _list_command(place),
        _show_command(place),
        _search_command(place),
        _delete_command(place),
        _reembed_command(place),
    ]


def _list_command(place: Place) -> click.Command:
    @click.command("list", epilog=examples("memory list", "memory list notes"))
    @click.argument("collection", required=False, callback=valid_name)
    @json_option
    @click.pass_context
    def list_memories(context: click.Context, collection: str | None, *, as_json: bool) -> None:
        """List the collections, or the memories of COLLECTION."""
        if collection is None:
            answer = place.run(Memory.collections)
            print_result(answer, lambda: _collections_text(answer), as_json=as_json)
            context.exit(int(not answer["collections"]))
        rows = place.run(lambda memory: _rows(memory, collection))
        listed = {"collection": collection, "count": len(rows), "memories": rows}
        lines = [f"{row['id']}: {one_line(str(row['title']))}" for row in rows]
        text = "\n".join(lines) or f"Collection {collection} is empty."
        print_result(listed, lambda: text, as_json=as_json)
        context.exit(int(not rows))

    return list_memories


def _show_command(place: Place) -> click.Command:
    @click.command("show", epilog=examples("memory show notes 3"))
    @collection_argument
    @click.argument("identifier", metavar="ID", type=click.IntRange(1, LARGEST_ID))
    @json_option
    def show_memory(collection: str, identifier: int, *, as_json: bool) -> None:
        """Print the memory of COLLECTION with this ID in full."""
        answer = place.run(lambda memory: memory.fetch(identifier, collection))
        print_result(answer, lambda: document_for_terminal(answer), as_json=as_json)

    return show_memory


def _search_command(place: Place) -> click.Command:
    @click.command("search", epilog=examples('memory search notes "Which port?" --limit 3'))
    @collection_argument
    @click.argument("query")
    @click.option(
        "--limit",
        type=click.IntRange(1, MOST_RESULTS),
        default=USUAL_RESULTS,
        help="The most previews.",
    )
    @json_option
    @click.pass_context
    def search_memories(
        context: click.Context, collection: str, query: str, *, limit: int, as_json: bool
    ) -> None:
        """Print previews of the memories of COLLECTION that are nearest to QUERY."""
        if not SHORTEST_QUERY <= len(query.strip()) <= LONGEST_QUERY:
            raise click.UsageError(f"QUERY has {SHORTEST_QUERY} to {LONGEST_QUERY} characters.")
        answer, notes = place.run(lambda memory: memory.search(query, collection, limit))
        for note in notes:
            print_text(note, err=True)
        print_result(answer, lambda: previews_for_terminal(answer), as_json=as_json)
        context.exit(int(not answer["results"]))

    return search_memories


def _delete_command(place: Place) -> click.Command:
    @click.command(
        "delete", epilog=examples("memory delete notes 3 5", "memory delete notes --all")
    )
    @collection_argument
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


def _reembed_command(place: Place) -> click.Command:
    @click.command("reembed", epilog=examples("memory reembed notes"))
    @collection_argument
    @click.option("--model", help="The model, as in the setting; by default the configured one.")
    def reembed_memories(collection: str, *, model: str | None) -> None:
        """Make new vectors for COLLECTION: with another model, or to let searches match words.

        If it is interrupted, the same command continues.
        """
        place.check_kept()
        target = place
        if model is not None:
            try:
                check_spec(model)
                values = {**place.settings.model_dump(), "model": model}
                settings = MemorySettings.model_validate(values)
            except ValueError as error:
                raise click.BadParameter(_reason(error), param_hint="--model") from None
            target = replace(place, settings=settings)
        with progress_bar("Encoding") as progress:
            done = target.run(lambda memory: reembed(memory, collection, progress))
        print_text(f"{done.count} memories of {collection} have vectors of {done.model}.")
        if model not in (None, place.settings.model):
            print_text(f"Now set [plugins.memory] model to {model}.")

    return reembed_memories


async def _rows(memory: Memory, collection: str) -> list[dict[str, int | str]]:
    await memory.describe(collection)
    return [
        {"id": document.id, "title": document.title, "preview": document.preview}
        async for document in memory.read_all(collection)
    ]


def _collections_text(answer: CollectionsAnswer) -> str:
    lines = [
        f"{one_line(entry['name'])}: {entry['count']} memories, {entry['model'] or 'unnamed model'}"
        for entry in answer["collections"]
    ]
    return "\n".join(lines) or "No collection exists yet. Make one with `memory import`."


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):  # its text has several lines, with the settings
        return error.errors()[0]["msg"].removeprefix("Value error, ")
    return str(error)


def _delete_all(place: Place, name: str, *, is_sure: bool) -> None:
    versions = place.run(lambda memory: _versions(memory, name))
    count = max(version.count for version in versions)
    if not is_sure:
        click.confirm(f"Delete {name} with its {count} memories?", abort=True, err=True)
    place.run(lambda memory: _drop(memory, name))
    print_text(f"{count} deleted")


async def _drop(memory: Memory, name: str) -> None:
    async with memory.store.held():
        for version in await _versions(memory, name):
            await memory.store.drop(version.name)


async def _versions(memory: Memory, name: str) -> list[Collection]:
    """Return the collection and its unfinished copy by `reembed`, without the missing one.

    Raises:
        MissingCollectionError: Both are missing.
    """
    copy = await memory.second(name)
    try:
        original = await memory.describe_any(name)
    except MissingCollectionError:
        if copy is None:
            raise
        return [copy]
    return [original] if copy is None else [original, copy]
