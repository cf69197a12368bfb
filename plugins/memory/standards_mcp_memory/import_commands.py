"""The commands `try`, `import` and `export`."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

import click
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError
from standards_mcp.commands import Report, examples, print_text, progress_bar, reports

from . import schemas
from .commands import (
    MemoryLocation,
    checked,
    collection_argument,
    pass_location,
    read_complete,
)
from .import_files import Source, line_of, read_source
from .import_markdown import Split
from .records import Document
from .rendering import PLAIN, left_out_note, one_line, render_document, render_search
from .service import Memory
from .writing import Writer, WriteResult

_TRY_RESULTS: Final = 5
_NOT_PRUNED: Final = "Nothing was pruned, because something was not imported."
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+")


class TryAnswer(TypedDict):
    """The previews of ``memory try``, and the best memory."""

    search: schemas.SearchAnswer
    document: schemas.DocumentAnswer


@click.command(
    "try", epilog=examples('memory try docs/decisions.md "Why is the stdio transport our own?"')
)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.argument("question")
@pass_location
@reports
def try_memories(location: MemoryLocation, path: Path, question: str) -> Report:
    """Import PATH, one memory for each heading, and print the memories nearest to QUESTION.

    The memories stay, in a collection that is named after PATH, until it is tried again.
    """
    source = read_source(path)
    source.check_has_files()
    if not source.drafts:
        reasons = "; ".join(f"{skip['where']} {skip['reason']}" for skip in source.skipped)
        raise InvalidInputError(f"{path} has nothing to remember. {reasons}".strip())
    # No other path has this name, because the old memories in the collection are deleted.
    real = path.resolve()
    digest = hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = _NOT_IN_NAMES.sub("-", real.stem).strip(".-")[: schemas.LONGEST_NAME - len(digest) - 1]
    collection = f"{name or 'memories'}-{digest}"
    answer = location.run(lambda memory: _try(memory, source, collection, question))
    previews, document = answer["search"], answer["document"]
    return Report(
        answer,
        lambda: f"{render_search(previews, PLAIN)}\n\n{render_document(document, PLAIN)}",
        notes=_skipped_lines(source.skipped),
    )


@click.command(
    "import",
    epilog=examples(
        "memory import docs --collection docs --prune",
        "memory import notes.jsonl --collection notes --dry-run",
    ),
)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--collection",
    required=True,
    callback=checked(schemas.CollectionName),
    help="Created if it is missing.",
)
@click.option(
    "--split",
    type=click.Choice(["file", "headings"]),
    default="headings",
    help="One memory for each second-level heading of Markdown (default), or for each file.",
)
@click.option(
    "--prune", is_flag=True, help="Delete memories of PATH whose files or headings are all gone."
)
@click.option("--yes", "is_sure", is_flag=True, help="Prune without asking.")
@click.option("--dry-run", is_flag=True, help="Only report; write nothing.")
@pass_location
@reports
def import_memories(  # noqa: PLR0913  - the options of a command
    location: MemoryLocation,
    path: Path,
    collection: str,
    split: Split,
    *,
    prune: bool,
    is_sure: bool,
    dry_run: bool,
) -> Report:
    """Import memories from PATH: a file of Markdown or JSONL, or a folder of both.

    A memory whose file was edited is updated, and unchanged ones stay as they are. So the same
    command also continues an import that was interrupted. Only --prune deletes memories, but
    none that a tool or a line of JSONL stored.
    """
    if prune and not (is_sure or dry_run or sys.stdin.isatty()):
        raise click.UsageError(
            "--prune deletes memories. Add --yes to confirm, or --dry-run to see which ones."
        )
    if not dry_run:
        location.check_persistent()
    source = read_source(path, split)
    if not prune:
        source.check_has_files()
    root = source.root if prune else None
    result = location.run(lambda memory: _write(memory, source, collection, root, dry_run=dry_run))
    is_complete = not (source.is_incomplete or result.skipped)
    stale = result.stale if is_complete else []
    if not stale:
        source.check_has_files()  # with --prune, an empty folder is valid if it had files before
    exit_code = int(not (source.drafts or stale))
    answer: schemas.ImportAnswer = {
        "collection": collection,
        "created": result.created,
        "updated": result.updated,
        "unchanged": result.unchanged,
        "skipped": source.skipped + result.skipped,
    }
    if prune:
        pruned = [memory.document for memory in stale if not memory.remaining_origins]
        if not (dry_run or is_sure or _confirm_prune(pruned)):
            pruned = []
        elif stale and not dry_run:
            pruned = location.run(lambda memory: Writer(memory).prune(collection, stale))
        answer["pruned"] = [{"id": memory.id, "title": memory.title} for memory in pruned]
    notes = () if is_complete or not prune else (_NOT_PRUNED,)
    return Report(answer, lambda: _import_text(answer, dry_run=dry_run), exit_code, notes)


@click.command("export", epilog=examples("memory export notes notes.jsonl"))
@collection_argument
@click.argument("file", type=click.File("w", encoding="utf-8", lazy=True), default="-")
@pass_location
def export_memories(location: MemoryLocation, collection: str, file: TextIO) -> None:
    """Write COLLECTION as JSONL with ids, to FILE or to the screen."""
    lines, uuid_count = location.run(lambda memory: _export_lines(memory, collection))
    file.writelines(f"{line}\n" for line in lines)
    if uuid_count:
        print_text(left_out_note(uuid_count), err=True)


IMPORT_COMMANDS: Final = (try_memories, import_memories, export_memories)


async def _try(memory: Memory, source: Source, collection: str, question: str) -> TryAnswer:
    result = await _write(memory, source, collection)
    if not source.is_incomplete:
        # Otherwise, the answer could be an older version of the text.
        await Writer(memory).delete([*result.memories.keys() - result.ids], collection)
    search, _ = await memory.search(question, collection, _TRY_RESULTS)
    document = await memory.fetch(search["results"][0]["id"], collection)
    return {"search": search, "document": document}


async def _write(
    memory: Memory,
    source: Source,
    collection: str,
    prune_root: str | None = None,
    *,
    dry_run: bool = False,
) -> WriteResult:
    with progress_bar("Importing") as progress:
        writer, files = Writer(memory), source.files
        return await writer.write(
            source.drafts, collection, progress, files, prune_root, dry_run=dry_run
        )


def _confirm_prune(pruned: Sequence[Document]) -> bool:
    if not pruned:
        return True
    for document in pruned:
        print_text(f"{document.id}: {one_line(document.title)}", err=True)
    question = f"Delete these {len(pruned)} memories? Their files or headings are gone."
    return click.confirm(question, err=True)


def _import_text(answer: schemas.ImportAnswer, *, dry_run: bool) -> str:
    start = "Would import into" if dry_run else "Imported into"
    counts = ", ".join(f"{answer[key]} {key}" for key in ("created", "updated", "unchanged"))
    lines = _skipped_lines(answer["skipped"])
    if "pruned" in answer:
        counts += f", {len(answer['pruned'])} pruned"
        lines += [f"Pruned {item['id']}: {one_line(item['title'])}" for item in answer["pruned"]]
    return "\n".join([f"{start} {answer['collection']}: {counts}", *lines])


def _skipped_lines(skipped: Sequence[schemas.Skipped]) -> list[str]:
    return [f"Skipped {skip['where']}: {skip['reason']}" for skip in skipped]


async def _export_lines(memory: Memory, collection: str) -> tuple[list[str], int]:
    """Return the lines of an export, and the number of memories with other ids than numbers."""
    lines = [line_of(document) for document in await read_complete(memory, collection)]
    return lines, max(0, await memory.count(collection) - len(lines))
