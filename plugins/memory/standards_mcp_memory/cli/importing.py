"""Commands that bring memories in and out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from standards_mcp.commands import examples, json_option, print_result, print_text, progress_bar
from standards_mcp_memory.answers import ImportAnswer, Skipped
from standards_mcp_memory.importing import Source, Split, line_of, read_source
from standards_mcp_memory.records import Document
from standards_mcp_memory.service import Memory
from standards_mcp_memory.settings import MemorySettings
from standards_mcp_memory.texts.markdown import one_line
from standards_mcp_memory.texts.rendering import left_out
from standards_mcp_memory.writing import Stale, Writer, Written

from .work import Place, check_kept, collection, named


@dataclass(frozen=True, slots=True)
class _Options:
    path: Path
    collection: str
    split: Split
    prune: bool
    is_sure: bool
    dry_run: bool
    as_json: bool

    def check(self, settings: MemorySettings) -> None:
        if self.prune and not (self.is_sure or self.dry_run or sys.stdin.isatty()):
            raise click.UsageError(
                "--prune deletes memories. Add --yes to confirm, or --dry-run to see which ones."
            )
        if not self.dry_run:
            check_kept(settings)


def import_command(place: Place) -> click.Command:
    """Return the command ``import``."""

    @click.command(
        "import",
        epilog=examples(
            "memory import docs --collection docs --prune",
            "memory import notes.jsonl --collection notes --dry-run",
        ),
    )
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.option("--collection", required=True, callback=named, help="Where they go; made new.")
    @click.option(
        "--split",
        type=click.Choice(["file", "headings"]),
        default="headings",
        help="One memory for each second-level heading of Markdown (default), or for each file.",
    )
    @click.option(
        "--prune",
        is_flag=True,
        help="Delete memories of PATH whose files or headings are all gone.",
    )
    @click.option("--yes", "is_sure", is_flag=True, help="Prune without asking.")
    @click.option("--dry-run", is_flag=True, help="Only show what would be done.")
    @json_option
    @click.pass_context
    def import_memories(context: click.Context, /, **given: Any) -> None:
        """Import memories from PATH: a file of Markdown or JSONL, or a folder of both.

        A memory whose file was edited is updated, and unchanged ones stay as they are. So the same
        command also continues an import that was interrupted. Only --prune deletes memories, but
        none that a tool or a line of JSONL stored.
        """
        options = _Options(**given)
        options.check(place.settings)
        source = read_source(options.path, options.split)
        if not options.prune:
            source.check()
        written, stale = place.run(lambda memory: _import(memory, source, options))
        if not stale:
            source.check()  # a folder that is empty now may have had files before
        pruned = [each.document for each in stale if not each.left]
        if stale and not options.dry_run:
            pruned = _pruned(place, options, stale)
        answer = _answer(options, source, written, pruned)
        print_result(
            answer,
            lambda: shown_import(answer, is_dry=options.dry_run),
            as_json=options.as_json,
        )
        context.exit(int(not source.drafts and not stale))

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
    writer: Writer, source: Source, collection: str, *, is_dry: bool = False
) -> Written:
    """Write the memories of a source, and return what became of them."""
    with progress_bar("Importing") as progress:
        return await writer.write(source.drafts, collection, progress, is_dry=is_dry)


def shown_import(answer: ImportAnswer, *, is_dry: bool) -> str:
    """Return what an import has done, as people read it."""
    start = "Would import into" if is_dry else "Imported into"
    counts = ", ".join(f"{answer[key]} {key}" for key in ("created", "updated", "unchanged"))
    pruned = answer.get("pruned")
    if pruned is not None:
        counts += f", {len(pruned)} pruned"
    return "\n".join(
        [
            f"{start} {answer['collection']}: {counts}",
            *shown_skipped(answer["skipped"]),
            *(f"Pruned {each['id']}: {one_line(each['title'])}" for each in pruned or []),
        ]
    )


def shown_skipped(skipped: Sequence[Skipped]) -> list[str]:
    """Return a line for each thing that was left out."""
    return [f"Skipped {each['where']}: {each['reason']}" for each in skipped]


async def _import(memory: Memory, source: Source, options: _Options) -> tuple[Written, list[Stale]]:
    """Import a source, and return the memories to prune as well."""
    writer = Writer(memory)
    written = await import_source(writer, source, options.collection, is_dry=options.dry_run)
    if not options.prune:
        return written, []
    if source.is_damaged or written.skipped:
        print_text("Nothing was pruned, because something was not imported.", err=True)
        return written, []
    stale = await writer.stale(options.collection, written.ids, source.reading(), source.root)
    return written, stale


def _pruned(place: Place, options: _Options, stale: Sequence[Stale]) -> list[Document]:
    """Delete memories if the user agrees, and return the deleted ones."""
    gone = [each.document for each in stale if not each.left]
    if gone and not options.is_sure:
        for each in gone:
            print_text(f"{each.id}: {one_line(each.title)}", err=True)
        question = f"Delete these {len(gone)} memories? Their files or headings are gone."
        if not click.confirm(question, err=True):
            return []
    return place.run(lambda memory: Writer(memory).prune(options.collection, stale))


def _answer(
    options: _Options, source: Source, written: Written, pruned: Sequence[Document]
) -> ImportAnswer:
    answer: ImportAnswer = {
        "collection": options.collection,
        "created": written.created,
        "updated": written.updated,
        "unchanged": written.unchanged,
        "skipped": source.skipped + written.skipped,
    }
    if options.prune:
        answer["pruned"] = [{"id": each.id, "title": each.title} for each in pruned]
    return answer


async def _lines(memory: Memory, collection: str) -> tuple[list[str], int]:
    """Return the lines of a collection, and how many memories have none."""
    await memory.describe(collection)
    lines = [line_of(each) async for each in memory.read_all(collection)]
    return lines, max(0, await memory.count(collection) - len(lines))
