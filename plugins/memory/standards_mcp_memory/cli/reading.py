"""Commands that read."""

from __future__ import annotations

import click

from standards_mcp.commands import examples, json_option, print_result, print_text
from standards_mcp_memory.answers import CollectionsAnswer
from standards_mcp_memory.arguments import (
    LONGEST_QUERY,
    MOST_RESULTS,
    SHORTEST_QUERY,
    USUAL_RESULTS,
)
from standards_mcp_memory.records import LARGEST_ID
from standards_mcp_memory.service import Memory
from standards_mcp_memory.texts.markdown import one_line

from .showing import shown_document, shown_previews
from .work import Place, collection, named


def list_command(place: Place) -> click.Command:
    """Return the command ``list``."""

    @click.command("list", epilog=examples("memory list", "memory list notes"))
    @click.argument("collection", required=False, callback=named)
    @json_option
    @click.pass_context
    def list_memories(context: click.Context, collection: str | None, *, as_json: bool) -> None:
        """List the collections, or the memories of COLLECTION."""
        if collection is None:
            found = place.run(Memory.collections)
            print_result(found, lambda: _collections(found), as_json=as_json)
            context.exit(int(not found["collections"]))
        rows = place.run(lambda memory: _rows(memory, collection))
        listed = {"collection": collection, "count": len(rows), "memories": rows}
        lines = [f"{row['id']}: {one_line(str(row['title']))}" for row in rows]
        shown = "\n".join(lines) or f"There are no memories in {collection}."
        print_result(listed, lambda: shown, as_json=as_json)
        context.exit(int(not rows))

    return list_memories


def show_command(place: Place) -> click.Command:
    """Return the command ``show``."""

    @click.command("show", epilog=examples("memory show notes 3"))
    @collection
    @click.argument("identifier", metavar="ID", type=click.IntRange(1, LARGEST_ID))
    @json_option
    def show_memory(collection: str, identifier: int, *, as_json: bool) -> None:
        """Print the memory of COLLECTION with this ID in full."""
        found = place.run(lambda memory: memory.fetch(identifier, collection))
        print_result(found, lambda: shown_document(found), as_json=as_json)

    return show_memory


def search_command(place: Place) -> click.Command:
    """Return the command ``search``."""

    @click.command("search", epilog=examples('memory search notes "Which port?" --limit 3'))
    @collection
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
        """Print previews of what COLLECTION knows about QUERY."""
        if not SHORTEST_QUERY <= len(query.strip()) <= LONGEST_QUERY:
            raise click.UsageError(f"QUERY has {SHORTEST_QUERY} to {LONGEST_QUERY} characters.")
        found, notes = place.run(lambda memory: memory.search(query, collection, limit))
        for note in notes:
            print_text(note, err=True)
        print_result(found, lambda: shown_previews(found), as_json=as_json)
        context.exit(int(not found["results"]))

    return search_memories


async def _rows(memory: Memory, collection: str) -> list[dict[str, int | str]]:
    await memory.describe(collection)
    return [
        {"id": each.id, "title": each.title, "preview": each.preview}
        async for each in memory.read_all(collection)
    ]


def _collections(found: CollectionsAnswer) -> str:
    lines = [
        f"{one_line(each['name'])}: {each['count']} memories, {each['model'] or 'unnamed model'}"
        for each in found["collections"]
    ]
    return "\n".join(lines) or "There are no collections yet. Make one by `memory import`."
