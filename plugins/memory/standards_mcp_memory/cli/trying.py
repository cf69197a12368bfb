"""The main job in one command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError
from standards_mcp_memory.answers import DocumentAnswer, SearchAnswer
from standards_mcp_memory.arguments import LONGEST_NAME
from standards_mcp_memory.importing import Source, read_source
from standards_mcp_memory.service import Memory

from .importing import import_source
from .showing import shown_document, shown_previews
from .work import Place, as_json, tell

_SHOWN: Final = 5
_ODD: Final = re.compile(r"[^\w.-]+")


class Tried(TypedDict):
    """What ``memory try`` has found."""

    search: SearchAnswer
    document: DocumentAnswer


def try_command(place: Place) -> click.Command:
    """Return the command ``try``."""

    @click.command("try")
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.argument("question")
    @as_json
    def try_memories(path: Path, question: str, *, is_json: bool) -> None:
        """Remember PATH, one memory a heading, and print what it says about QUESTION.

        The memories stay, in a collection with the name of PATH.
        """
        source = read_source(path, "headings")
        if not source.drafts:
            reasons = "; ".join(f"{each['where']} {each['reason']}" for each in source.skipped)
            raise InvalidInputError(f"{path} has nothing to remember. {reasons}".strip())
        tried = place.run(lambda memory: _tried(memory, source, _name_of(path), question))
        tell(tried, lambda: _shown(tried), is_json=is_json)

    return try_memories


async def _tried(memory: Memory, source: Source, collection: str, question: str) -> Tried:
    await import_source(memory, source, collection)
    found, _ = await memory.search(question, collection, _SHOWN)
    document = await memory.fetch(found["results"][0]["id"], collection)
    return {"search": found, "document": document}


def _name_of(path: Path) -> str:
    name = _ODD.sub("-", path.resolve().stem).strip(".-")
    return name[:LONGEST_NAME] or "memories"


def _shown(tried: Tried) -> str:
    return f"{shown_previews(tried['search'])}\n\n{shown_document(tried['document'])}"
