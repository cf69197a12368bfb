"""The commands `try`, `import` and `export`."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import click
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_result, print_text, progress_bar

from .commands import Place, collection_argument, valid_name
from .import_files import Source, Split, line_of, read_source
from .records import Document
from .rendering import document_for_terminal, left_out, one_line, previews_for_terminal
from .schemas import LONGEST_NAME, DocumentAnswer, ImportAnswer, SearchAnswer, Skipped
from .service import Memory
from .writing import Stale, Writer, Written

_TRY_RESULTS: Final = 5
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+")


class TryAnswer(TypedDict):
    """The previews of ``memory try``, and the best memory."""

    search: SearchAnswer
    document: DocumentAnswer


@dataclass(frozen=True, slots=True)
class _Options:
    path: Path
    collection: str
    split: Split
    prune: bool
    is_sure: bool
    dry_run: bool
    as_json: bool

    def check(self, place: Place) -> None:
        if self.prune and not (self.is_sure or self.dry_run or sys.stdin.isatty()):
            raise click.UsageError(
                "--prune deletes memories. Add --yes to confirm, or --dry-run to see which ones."
            )
        if not self.dry_run:
            place.check_kept()


def import_commands(place: Place) -> list[click.Command]:
    """Return the commands that read and write files."""
    return [_try_command(place), _import_command(place), _export_command(place)]


def _try_command(place: Place) -> click.Command:
    @click.command(
        "try",
        epilog=examples('memory try docs/decisions.md "Why is no approximate index used?"'),
    )
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.argument("question")
    @json_option
    def try_memories(path: Path, question: str, *, as_json: bool) -> None:
        """Remember PATH, one memory a heading, and print the memories nearest to QUESTION.

        The memories stay, in a collection that is named after PATH, until it is tried again.
        """
        source = read_source(path)
        source.check()
        if not source.drafts:
            reasons = "; ".join(f"{skip['where']} {skip['reason']}" for skip in source.skipped)
            raise InvalidInputError(f"{path} has nothing to remember. {reasons}".strip())
        answer = place.run(lambda memory: _try(memory, source, _collection_of(path), question))
        for line in _skipped_lines(source.skipped):
            print_text(line, err=True)
        print_result(answer, lambda: _try_text(answer), as_json=as_json)

    return try_memories


def _import_command(place: Place) -> click.Command:
    @click.command(
        "import",
        epilog=examples(
            "memory import docs --collection docs --prune",
            "memory import notes.jsonl --collection notes --dry-run",
        ),
    )
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.option(
        "--collection", required=True, callback=valid_name, help="Created if it is missing."
    )
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
    @click.option("--dry-run", is_flag=True, help="Only report; write nothing.")
    @json_option
    @click.pass_context
    def import_memories(context: click.Context, /, **values: Any) -> None:
        """Import memories from PATH: a file of Markdown or JSONL, or a folder of both.

        A memory whose file was edited is updated, and unchanged ones stay as they are. So the same
        command also continues an import that was interrupted. Only --prune deletes memories, but
        none that a tool or a line of JSONL stored.
        """
        options = _Options(**values)
        options.check(place)
        source = read_source(options.path, options.split)
        if not options.prune:
            source.check()
        written, stale = place.run(lambda memory: _import(memory, source, options))
        if not stale:
            source.check()  # with --prune, an empty folder is valid if it had files before
        pruned = [memory.document for memory in stale if not memory.left]
        if stale and not options.dry_run:
            pruned = _prune(place, options, stale)
        answer = _import_answer(options, source, written, pruned)
        print_result(
            answer,
            lambda: _import_text(answer, is_dry=options.dry_run),
            as_json=options.as_json,
        )
        context.exit(int(not source.drafts and not stale))

    return import_memories


def _export_command(place: Place) -> click.Command:
    @click.command("export", epilog=examples("memory export notes notes.jsonl"))
    @collection_argument
    @click.argument("file", type=click.File("w", encoding="utf-8", lazy=True), default="-")
    def export_memories(collection: str, file: TextIO) -> None:
        """Write COLLECTION as JSONL with ids, to FILE or to the screen."""
        lines, left_out_count = place.run(lambda memory: _lines(memory, collection))
        file.writelines(f"{line}\n" for line in lines)
        if left_out_count:
            print_text(left_out(left_out_count), err=True)

    return export_memories


async def _try(memory: Memory, source: Source, collection: str, question: str) -> TryAnswer:
    writer = Writer(memory)
    written = await _write(writer, source, collection)
    if not source.is_damaged:
        # Without this, the answer could be from an older text.
        await writer.prune(collection, await writer.unmatched(collection, written.ids))
    search, _ = await memory.search(question, collection, _TRY_RESULTS)
    document = await memory.fetch(search["results"][0]["id"], collection)
    return {"search": search, "document": document}


async def _write(
    writer: Writer, source: Source, collection: str, *, is_dry: bool = False
) -> Written:
    with progress_bar("Importing") as progress:
        return await writer.write(source.drafts, collection, progress, is_dry=is_dry)


def _collection_of(path: Path) -> str:
    """Return a collection name that no other path has, since a `try` deletes old memories."""
    real = path.resolve()
    digest = hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = _NOT_IN_NAMES.sub("-", real.stem).strip(".-")[: LONGEST_NAME - len(digest) - 1]
    return f"{name or 'memories'}-{digest}"


async def _import(memory: Memory, source: Source, options: _Options) -> tuple[Written, list[Stale]]:
    """Import a source; also return the memories to prune."""
    writer = Writer(memory)
    written = await _write(writer, source, options.collection, is_dry=options.dry_run)
    if not options.prune:
        return written, []
    if source.is_damaged or written.skipped:
        print_text("Nothing was pruned, because something was not imported.", err=True)
        return written, []
    stale = await writer.stale(options.collection, written.ids, source.reading(), source.root)
    return written, stale


def _prune(place: Place, options: _Options, stale: Sequence[Stale]) -> list[Document]:
    """Delete memories if the user agrees, and return the deleted ones."""
    gone = [memory.document for memory in stale if not memory.left]
    if gone and not options.is_sure:
        for document in gone:
            print_text(f"{document.id}: {one_line(document.title)}", err=True)
        question = f"Delete these {len(gone)} memories? Their files or headings are gone."
        if not click.confirm(question, err=True):
            return []
    return place.run(lambda memory: Writer(memory).prune(options.collection, stale))


def _import_answer(
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
        answer["pruned"] = [{"id": memory.id, "title": memory.title} for memory in pruned]
    return answer


def _try_text(answer: TryAnswer) -> str:
    previews, document = answer["search"], answer["document"]
    return f"{previews_for_terminal(previews)}\n\n{document_for_terminal(document)}"


def _import_text(answer: ImportAnswer, *, is_dry: bool) -> str:
    start = "Would import into" if is_dry else "Imported into"
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


async def _lines(memory: Memory, collection: str) -> tuple[list[str], int]:
    """Return the lines of an export, and the number of memories left out."""
    await memory.describe(collection)
    lines = [line_of(document) async for document in memory.read_all(collection)]
    return lines, max(0, await memory.count(collection) - len(lines))
