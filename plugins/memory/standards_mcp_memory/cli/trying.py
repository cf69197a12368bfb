"""The main job in one command."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

import click
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_result, print_text
from standards_mcp_memory.answers import DocumentAnswer, SearchAnswer
from standards_mcp_memory.arguments import LONGEST_NAME
from standards_mcp_memory.importing import Source, read_source
from standards_mcp_memory.service import Memory
from standards_mcp_memory.writing import Writer

from .importing import import_source, shown_skipped
from .showing import shown_document, shown_previews
from .work import Place

_SHOWN: Final = 5
_ODD: Final = re.compile(r"[^\w.-]+")


class Tried(TypedDict):
    """What ``memory try`` has found."""

    search: SearchAnswer
    document: DocumentAnswer


def try_command(place: Place) -> click.Command:
    """Return the command ``try``."""

    @click.command(
        "try",
        epilog=examples('memory try docs/decisions.md "Why is no approximate index used?"'),
    )
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.argument("question")
    @json_option
    def try_memories(path: Path, question: str, *, as_json: bool) -> None:
        """Remember PATH, one memory a heading, and print what it says about QUESTION.

        The memories stay, in a collection that is named after PATH, until it is tried again.
        """
        source = read_source(path)
        source.check()
        if not source.drafts:
            reasons = "; ".join(f"{each['where']} {each['reason']}" for each in source.skipped)
            raise InvalidInputError(f"{path} has nothing to remember. {reasons}".strip())
        tried = place.run(lambda memory: _tried(memory, source, _name_of(path), question))
        for line in shown_skipped(source.skipped):
            print_text(line, err=True)
        print_result(tried, lambda: _shown(tried), as_json=as_json)

    return try_memories


async def _tried(memory: Memory, source: Source, collection: str, question: str) -> Tried:
    writer = Writer(memory)
    written = await import_source(writer, source, collection)
    if not source.is_damaged:
        # The answer would be of an older text.
        await writer.prune(collection, await writer.others(collection, written.ids))
    found, _ = await memory.search(question, collection, _SHOWN)
    document = await memory.fetch(found["results"][0]["id"], collection)
    return {"search": found, "document": document}


def _name_of(path: Path) -> str:
    """Return a name of a path's own, since what is in its collection comes and goes with it."""
    real = path.resolve()
    digest = hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = _ODD.sub("-", real.stem).strip(".-")[: LONGEST_NAME - len(digest) - 1]
    return f"{name or 'memories'}-{digest}"


def _shown(tried: Tried) -> str:
    return f"{shown_previews(tried['search'])}\n\n{shown_document(tried['document'])}"
