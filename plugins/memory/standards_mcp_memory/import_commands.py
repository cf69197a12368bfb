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

from .commands import MemoryLocation, collection_argument, pass_location, valid_name
from .import_files import Source, line_of, read_source
from .import_markdown import Split
from .matching import ImportedFiles
from .records import Document
from .rendering import document_for_terminal, left_out_note, one_line, previews_for_terminal
from .schemas import LONGEST_NAME, DocumentAnswer, ImportAnswer, SearchAnswer, Skipped
from .service import Memory
from .writing import StaleMemory, Writer, WriteResult

_TRY_RESULTS: Final = 5
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+")


class TryAnswer(TypedDict):
    """The previews of ``memory try``, and the best memory."""

    search: SearchAnswer
    document: DocumentAnswer


@click.command(
    "try", epilog=examples('memory try docs/decisions.md "Why is no approximate index used?"')
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
    answer = location.run(lambda memory: _try(memory, source, _collection_of(path), question))
    return Report(answer, lambda: _try_text(answer), notes=_skipped_lines(source.skipped))


@click.command(
    "import",
    epilog=examples(
        "memory import docs --collection docs --prune",
        "memory import notes.jsonl --collection notes --dry-run",
    ),
)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--collection", required=True, callback=valid_name, help="Created if it is missing.")
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
    result, stale = location.run(
        lambda memory: _import(memory, source, collection, prune=prune, dry_run=dry_run)
    )
    if not stale:
        source.check_has_files()  # with --prune, an empty folder is valid if it had files before
    answer: ImportAnswer = {
        "collection": collection,
        "created": result.created,
        "updated": result.updated,
        "unchanged": result.unchanged,
        "skipped": source.skipped + result.skipped,
    }
    if prune:
        pruned = [memory.document for memory in stale if not memory.remaining_origins]
        if pruned and not (is_sure or dry_run or _confirm_prune(pruned)):
            pruned = []
        elif stale and not dry_run:
            pruned = location.run(lambda memory: Writer(memory).prune(collection, stale))
        answer["pruned"] = [{"id": memory.id, "title": memory.title} for memory in pruned]
    found_nothing = not source.drafts and not stale
    return Report(answer, lambda: _import_text(answer, dry_run=dry_run), int(found_nothing))


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
        documents = memory.read_all(collection, with_payload=False)
        ids = [document.id async for document in documents if document.id not in result.ids]
        await Writer(memory).delete(ids, collection)
    search, _ = await memory.search(question, collection, _TRY_RESULTS)
    document = await memory.fetch(search["results"][0]["id"], collection)
    return {"search": search, "document": document}


async def _import(
    memory: Memory, source: Source, collection: str, *, prune: bool, dry_run: bool
) -> tuple[WriteResult, list[StaleMemory]]:
    """Import a source; also return the memories to prune."""
    result = await _write(memory, source, collection, dry_run=dry_run)
    if not prune:
        return result, []
    if source.is_incomplete or result.skipped:
        print_text("Nothing was pruned, because something was not imported.", err=True)
        return result, []
    imported = ImportedFiles.of(source.drafts, source.files)
    return result, await Writer(memory).find_stale(collection, result.ids, imported, source.root)


async def _write(
    memory: Memory, source: Source, collection: str, *, dry_run: bool = False
) -> WriteResult:
    with progress_bar("Importing") as progress:
        return await Writer(memory).write(source.drafts, collection, progress, dry_run=dry_run)


def _collection_of(path: Path) -> str:
    """Return a name that no other path has, because `try` deletes the old memories there."""
    real = path.resolve()
    digest = hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = _NOT_IN_NAMES.sub("-", real.stem).strip(".-")[: LONGEST_NAME - len(digest) - 1]
    return f"{name or 'memories'}-{digest}"


def _confirm_prune(pruned: Sequence[Document]) -> bool:
    for document in pruned:
        print_text(f"{document.id}: {one_line(document.title)}", err=True)
    question = f"Delete these {len(pruned)} memories? Their files or headings are gone."
    return click.confirm(question, err=True)


def _try_text(answer: TryAnswer) -> str:
    previews, document = answer["search"], answer["document"]
    return f"{previews_for_terminal(previews)}\n\n{document_for_terminal(document)}"


def _import_text(answer: ImportAnswer, *, dry_run: bool) -> str:
    start = "Would import into" if dry_run else "Imported into"
    counts = ", ".join(f"{answer[key]} {key}" for key in ("created", "updated", "unchanged"))
    pruned = answer.get("pruned")
    if pruned is not None:
        counts += f", {len(pruned)} pruned"
    return "\n".join(
        [
            f"{start} {answer['collection']}: {counts}",
            *_skipped_lines(answer["skipped"]),
            *(f"Pruned {memory['id']}: {one_line(memory['title'])}" for memory in pruned or []),
        ]
    )


def _skipped_lines(skipped: Sequence[Skipped]) -> list[str]:
    return [f"Skipped {skip['where']}: {skip['reason']}" for skip in skipped]


async def _export_lines(memory: Memory, collection: str) -> tuple[list[str], int]:
    """Return the lines of an export, and the number of memories with other ids than numbers."""
    await memory.describe(collection)
    lines = [line_of(document) async for document in memory.read_all(collection)]
    return lines, max(0, await memory.count(collection) - len(lines))
