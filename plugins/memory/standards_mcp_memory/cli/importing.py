"""Commands that bring memories in and out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from standards_mcp.commands import examples, json_option, print_result, print_text, progress_bar
from standards_mcp_memory.answers import ImportAnswer, Skipped
from standards_mcp_memory.importing import Source, Split, line_of, read_source
from standards_mcp_memory.service import Memory
from standards_mcp_memory.texts.rendering import left_out
from standards_mcp_memory.writing import Writer

from .work import Place, check_kept, collection, named


def import_command(place: Place) -> click.Command:
    """Return the command ``import``."""

    @click.command(
        "import",
        epilog=examples(
            "memory import docs --collection docs --split headings",
            "memory import notes.jsonl --collection notes --dry-run",
        ),
    )
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.option("--collection", required=True, callback=named, help="Where they go; made new.")
    @click.option(
        "--split",
        type=click.Choice(["file", "headings"]),
        default="file",
        help="One memory a file of Markdown, or one a second-level heading.",
    )
    @click.option("--dry-run", is_flag=True, help="Only tell what would be imported.")
    @json_option
    @click.pass_context
    def import_memories(
        context: click.Context,
        path: Path,
        *,
        collection: str,
        split: Split,
        dry_run: bool,
        as_json: bool,
    ) -> None:
        """Import memories from PATH: a file of Markdown or JSONL, or a folder of both.

        What is there already stays as it is, so the same command goes on where one was ended.
        """
        if not dry_run:
            check_kept(place.settings)
        source = read_source(path, split)
        answer = place.run(lambda memory: import_source(memory, source, collection, is_dry=dry_run))
        print_result(answer, lambda: shown_import(answer, is_dry=dry_run), as_json=as_json)
        context.exit(int(not source.drafts))

    return import_memories


def export_command(place: Place) -> click.Command:
    """Return the command ``export``."""

    @click.command("export", epilog=examples("memory export notes notes.jsonl"))
    @collection
    @click.argument("file", type=click.File("w", encoding="utf-8", lazy=True), default="-")
    def export_memories(collection: str, file: TextIO) -> None:
        """Write COLLECTION as JSONL with ids, to FILE or to the screen."""
        lines, odd = place.run(lambda memory: _lines(memory, collection))
        file.writelines(f"{line}\n" for line in lines)
        if odd:
            print_text(left_out(odd), err=True)

    return export_memories


async def import_source(
    memory: Memory, source: Source, collection: str, *, is_dry: bool = False
) -> ImportAnswer:
    """Write what was read, and return what became of it."""
    with progress_bar("Importing") as progress:
        counts = await Writer(memory).write(source.drafts, collection, progress, is_dry=is_dry)
    return {
        "collection": collection,
        "created": counts.created,
        "updated": counts.updated,
        "unchanged": counts.unchanged,
        "skipped": source.skipped,
    }


def shown_import(answer: ImportAnswer, *, is_dry: bool) -> str:
    """Return what an import has done, as people read it."""
    start = "Would import into" if is_dry else "Imported into"
    counts = ", ".join(f"{answer[key]} {key}" for key in ("created", "updated", "unchanged"))
    return "\n".join(
        [f"{start} {answer['collection']}: {counts}", *shown_skipped(answer["skipped"])]
    )


def shown_skipped(skipped: Sequence[Skipped]) -> list[str]:
    """Return a line for each thing that was left out."""
    return [f"Skipped {each['where']}: {each['reason']}" for each in skipped]


async def _lines(memory: Memory, collection: str) -> tuple[list[str], int]:
    """Return the lines of a collection, and how many memories have none."""
    await memory.describe(collection)
    lines = [line_of(each) async for each in memory.read_all(collection)]
    return lines, max(0, await memory.count(collection) - len(lines))
