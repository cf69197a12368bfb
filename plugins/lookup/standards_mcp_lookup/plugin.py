"""The plugin: its tool and its command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import Field

from standards_mcp import InvalidInputError, Plugin, Tool, hookimpl
from standards_mcp_catalog import Catalog

from .answers import DetailsEnvelope

if TYPE_CHECKING:
    from standards_mcp_catalog.vocabulary.readings import Request

MAX_CODES = 20
MAX_CHARACTERS = 512

DESCRIPTION = """\
Get everything about one educational standard by its code, as anyone writes it (3.NF.A.1, \
CCSS.Math.Content.3.NF.A.1, HSF-LE.A.1a, MP1), or by its _id (GUID), ASN id or CASE URI; or about \
up to 20 at once, separated by commas. Answers with all its fields, the headings above it \
(ancestors), its lettered parts (children) and its neighbours (siblings). If several standards \
share a code, all of them come back, best match first. To find standards by topic or activity, \
call find_relevant_standards instead."""
INSTRUCTIONS = """\
Educational standards for teachers.
Call {get_standard_details} with a code such as 3.NF.A.1 or an _id for the full record, its \
ancestors and its parts.
Quote statement_notation when you cite a standard.
Where text_status is 'paraphrase', say that the wording is not official.
"""

StandardId = Annotated[
    str,
    Field(
        description="A code such as '3.NF.A.1', or a GUID, an ASN id or a CASE URI; or up to 20 "
        "of them: '3.NF.A.1, RL.4.3'."
    ),
]


class LookupPlugin(Plugin):
    """Contributes ``get_standard_details`` and ``standards-mcp lookup``."""

    title = "Educational standards"
    instructions = INSTRUCTIONS
    needs = (Catalog,)

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
                returns_untrusted_text=True,
            )
        ]

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return ``standards-mcp lookup``."""
        from .command import lookup_command

        return [lookup_command]

    async def get_standard_details(self, standard_id: StandardId) -> DetailsEnvelope:
        """Return the standards that codes or ids name, with their relatives."""
        from .answer import answer

        return await answer(self.context.service(Catalog), _checked(standard_id))


def _checked(standard_id: str) -> Request:
    from standards_mcp_catalog.vocabulary.readings import requests_in

    text = standard_id.strip()
    if not text:
        raise InvalidInputError("standard_id is empty. Give a code such as 3.NF.A.1, or an _id.")
    if len(text) > MAX_CODES * MAX_CHARACTERS:
        raise _too_long(len(text))
    request = requests_in(text)
    names = request.names()
    if len(names) > MAX_CODES:
        raise InvalidInputError(
            f"standard_id names {len(names)} standards; one call answers at most {MAX_CODES}. "
            "Send the others in a further call."
        )
    if (longest := max(map(len, names))) > MAX_CHARACTERS:
        raise _too_long(longest)
    return request


def _too_long(count: int) -> InvalidInputError:
    return InvalidInputError(
        f"standard_id has {count:,} characters; a code or an id has at most {MAX_CHARACTERS}. "
        "To search by a description, use find_relevant_standards."
    )
