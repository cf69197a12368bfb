"""Find the standard, the standard set or the jurisdiction that a text names."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Final

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp_catalog import Catalog, StandardRecord, StandardSet
from standards_mcp_catalog.records import nearest_heading
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    folded,
    jurisdictions_meant,
    jurisdictions_named,
    place_named,
    unknown_jurisdiction_error,
)

from .declared import MAX_CHARACTERS

_MOST_NAMESAKES: Final = 5
_LONGEST_NAME: Final = 60


async def standards_named(catalog: Catalog, identifier: str) -> list[StandardRecord]:
    """Return the standards that an id or a code names, the best match first; at least one.

    Raises:
        InvalidInputError: The text is not an identifier.
        NotFoundError: The standard does not exist; the message names the nearest codes.
        CatalogError: The catalog cannot be read.
    """
    text = checked_identifier(identifier, "standard_id")
    found = await catalog.find(text)
    if not found:
        raise NotFoundError(f"Standard {text!r} not found.{await _advice(catalog, text)}")
    return found


async def outside_first(
    catalog: Catalog, standards: Sequence[StandardRecord], jurisdiction: str
) -> list[StandardRecord]:
    """Return *standards* with those outside a jurisdiction first, otherwise in their order.

    Raises:
        InvalidInputError: The name of the jurisdiction is ambiguous.
        CatalogError: The catalog cannot be read.
    """
    all_sets = await catalog.sets()
    inside = {each.jurisdiction_id for each in sets_of_jurisdiction(jurisdiction, all_sets.sets)}
    return sorted(standards, key=lambda each: each.jurisdiction_id in inside)


async def not_found_error(
    catalog: Catalog, text: str, sets: Sequence[StandardSet]
) -> NotFoundError:
    """Return the error for a text that is not the name of anything in the tree."""
    if place_named(text):
        return NotFoundError(str(unknown_jurisdiction(text, sets)))
    advice = await _advice(catalog, text)
    return NotFoundError(
        f"No jurisdiction, standard set or standard is called {text!r} here. Leave parent out to "
        f"begin at the top.{advice}"
    )


def name_of(record: StandardRecord) -> str:
    """Return the code of a standard, or its text and nearest heading if it has no code."""
    if record.statement_notation:
        return record.statement_notation
    text = repr(shorten(record.description, _LONGEST_NAME, placeholder=" ..."))
    above = nearest_heading(record.content, record.description)
    return f"{text} under {above[0] or repr(above[1])}" if above else text


def namesakes(others: Sequence[StandardRecord]) -> str:
    """Return a sentence that lists other standards with the same identifier, or ""."""
    if not others:
        return ""
    listed = ", ".join(
        f"{each.id} ({each.jurisdiction_title})" for each in others[:_MOST_NAMESAKES]
    )
    more = f" and {len(others) - _MOST_NAMESAKES} more" if len(others) > _MOST_NAMESAKES else ""
    return f"Others have this code too: {listed}{more}; give an _id for one of them."


def checked_identifier(text: str, argument: str) -> str:
    """Return a text without the space around it.

    Raises:
        InvalidInputError: The text is empty, or too long for an identifier.
    """
    text = text.strip()
    if not text:
        raise InvalidInputError(f"{argument} is empty. Give a code such as 3.NF.A.1, or an _id.")
    if len(text) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"{argument} has {len(text):,} characters; a code or an id has at most "
            f"{MAX_CHARACTERS}. To search by a description, use find_relevant_standards."
        )
    return text


def sets_named(text: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the set with this id, or the sets with this title, ignoring case and punctuation."""
    wanted = folded(text)
    by_id = [each for each in sets if folded(each.id) == wanted]
    return by_id or [each for each in sets if folded(each.title) == wanted]


def sets_of_jurisdiction(text: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the sets of a state or body, by its id or a name; an empty list if it is unknown.

    Raises:
        InvalidInputError: The name is ambiguous; the message names the jurisdictions.
    """
    titles = {each.jurisdiction_title for each in sets}
    if not jurisdictions_named(text, titles):
        wanted = folded(text)
        return [each for each in sets if folded(each.jurisdiction_id) == wanted]
    try:
        jurisdictions = jurisdictions_meant(text, titles)
    except JurisdictionNameError as error:
        raise InvalidInputError(str(error)) from None
    return [each for each in sets if each.jurisdiction_title in jurisdictions]


def unknown_jurisdiction(text: str, sets: Sequence[StandardSet]) -> InvalidInputError:
    """Return the error for a jurisdiction without standards; it names jurisdictions with some."""
    titles = dict.fromkeys(each.jurisdiction_title for each in sets)
    error = unknown_jurisdiction_error(text, list(titles))
    return InvalidInputError(f"{error} browse_standards without parent lists all.")


async def _advice(catalog: Catalog, text: str) -> str:
    nearest = await catalog.suggest(text)
    codes = [each.statement_notation for each in nearest if each.statement_notation]
    hint = f" Nearest codes: {', '.join(codes)}." if codes else ""
    return f"{hint} To find standards by topic, call find_relevant_standards."
