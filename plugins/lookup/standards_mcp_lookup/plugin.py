"""The plugin: its tool and its command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import click
from pydantic import Field

from standards_mcp import (
    InvalidInputError,
    NotFoundError,
    Plugin,
    StandardRecord,
    Tool,
    hookimpl,
)

from .command import lookup_command
from .details import SEARCH_ADVICE, DetailsEnvelope, describe

MAX_MATCHES = 10
MAX_CHARACTERS = 512

DESCRIPTION = """\
Get everything about one educational standard by its code, as anyone writes it (3.NF.A.1, \
CCSS.Math.Content.3.NF.A.1, HSF-LE.A.1a, MP1), or by its _id (GUID), ASN id or CASE URI. Answers \
with all its fields, the headings it stands under (ancestors), its lettered parts (children) and \
its neighbours (siblings). Where several standards share a code, all of them come back, best match \
first. To find standards by topic or activity, call find_relevant_standards instead."""
INSTRUCTIONS = """\
Educational standards for teachers.
Call {get_standard_details} with a code such as 3.NF.A.1 or an _id for the full record, its \
ancestors and its parts.
Quote statement_notation when you cite a standard.
Where text_status is 'paraphrase', say that the wording is not official.
"""

StandardId = Annotated[
    str,
    Field(description="A code such as '3.NF.A.1', or a GUID, an ASN id or a CASE URI."),
]


class LookupPlugin(Plugin):
    """Contributes ``get_standard_details`` and ``standards-mcp lookup``."""

    instructions = INSTRUCTIONS

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the one tool."""
        return [
            Tool(
                name="get_standard_details",
                title="Get standard details",
                description=DESCRIPTION,
                function=self.get_standard_details,
                read_only=True,
                idempotent=True,
                open_world=False,
            )
        ]

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return ``standards-mcp lookup``."""
        return [lookup_command]

    async def get_standard_details(self, standard_id: StandardId) -> DetailsEnvelope:
        """Return the standards that an identifier names, with what stands around them."""
        identifier, catalog = _checked(standard_id), self.context.catalog
        matches = await catalog.find(identifier)
        notes = catalog.notes()
        if not matches:
            nearest = await catalog.suggest(identifier)
            message = _not_found(identifier, nearest)
            raise NotFoundError(_with_notes(message, notes or catalog.notes()))
        results = await describe(catalog, matches[:MAX_MATCHES])
        message = _with_notes(_message(identifier, matches), notes or catalog.notes())
        return {"success": True, "results": results, "message": message}


def _checked(standard_id: str) -> str:
    text = standard_id.strip()
    if not text:
        raise InvalidInputError("standard_id is empty. Give a code such as 3.NF.A.1, or an _id.")
    if len(text) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"standard_id has {len(text):,} characters; a code or an id has at most "
            f"{MAX_CHARACTERS}. To search by a description, use find_relevant_standards."
        )
    return text


def _not_found(identifier: str, nearest: Iterable[StandardRecord]) -> str:
    message = f"Standard '{identifier}' not found. {SEARCH_ADVICE}"
    codes = [record.statement_notation for record in nearest if record.statement_notation]
    return f"{message} Nearest codes: {', '.join(codes)}." if codes else message


def _with_notes(message: str, notes: Iterable[str]) -> str:
    return ". ".join((message.removesuffix("."), *notes)) if notes else message


def _message(identifier: str, matches: list[StandardRecord]) -> str:
    if len(matches) == 1:
        return "Retrieved standard details"
    shown = f", the first {MAX_MATCHES} are shown" if len(matches) > MAX_MATCHES else ""
    return (
        f"Retrieved standard details: {len(matches)} standards match '{identifier}', best first"
        f"{shown}"
    )
