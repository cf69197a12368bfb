"""From a name as people write it to a filter by the values that the catalog really holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp_catalog import Catalog, FieldValues
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    jurisdictions_meant,
    jurisdictions_named,
    listed,
    quoted,
    titles_like,
)
from standards_mcp_catalog.vocabulary.places import folded, names_of_place

_JURISDICTION_FIELDS: Final = ("jurisdiction_title", "jurisdiction_id")
# A standard that stands in several sets has one of them for its own.
_SET_FIELDS: Final = (
    "standard_set_title",
    "standard_set_id",
    "also_in_set_titles",
    "also_in_set_ids",
)
_Known: TypeAlias = Mapping[str, FieldValues]
_Found: TypeAlias = dict[str, Sequence[str]]


async def named_value_filter(field: str, catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the records whose *field* is *text*, whatever its case.

    Raises:
        InvalidInputError: No record has this value; the message names those that there are.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, (field,))
    return _any_of(_equal(text, known) or _unknown(text, known)) or _refuse(text, known, field)


async def jurisdiction_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the standards of a state or body, by its name or its id.

    A name may be a state's postal code, that of its publisher, initials, or cut after a word:
    ``TX``, ``CPALMS``, ``CCSS``, ``Common Core``. Where the catalog cannot list all jurisdictions,
    every name of the place is asked for.

    Raises:
        InvalidInputError: There is none, or several; the message names those that there are.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, _JURISDICTION_FIELDS)
    title, id_ = _JURISDICTION_FIELDS
    titles = known[title].counts
    by_id = _equal(text, {id_: known[id_]})
    if by_id and not jurisdictions_named(text, titles):
        return _any_of(by_id) or {}
    if not titles and known[title].complete:
        _refuse(text, known, "jurisdiction")
    try:
        found: _Found = {title: jurisdictions_meant(text, titles)}
    except JurisdictionNameError as error:
        if known[title].complete or jurisdictions_named(text, titles):
            raise InvalidInputError(str(error)) from None
        found = {}
    if not known[title].complete:
        spellings = dict.fromkeys((*found.get(title, ()), text.strip(), *names_of_place(text)))
        found = {title: list(spellings), id_: [text.strip()]}
    return _any_of(found | by_id) or {}


async def set_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the standards of one set, by its id or its title.

    Raises:
        InvalidInputError: There is no such set; the message names those with a title like it.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, _SET_FIELDS)
    found = _unknown(text, known) | _equal(text, known)
    return _any_of(found) or _refuse(text, known, "standard set")


async def _values(catalog: Catalog, fields: Sequence[str]) -> _Known:
    return {field: await catalog.values(field) for field in fields}


def _equal(text: str, known: _Known) -> _Found:
    """Return, by field, the values that are *text* but for case, spaces and dashes of a GUID."""
    wanted = folded(text)
    found = {
        field: [value for value in values.counts if folded(value) == wanted]
        for field, values in known.items()
    }
    return {field: values for field, values in found.items() if values}


def _unknown(text: str, known: _Known) -> _Found:
    """Return *text* for each field of which the catalog cannot list every value."""
    return {field: [text.strip()] for field, values in known.items() if not values.complete}


def _any_of(found: _Found) -> FilterExpression | None:
    conditions = [{field: {"$in": list(values)}} for field, values in found.items()]
    return {"$or": conditions} if len(conditions) > 1 else next(iter(conditions), None)


def _refuse(text: str, known: _Known, what: str) -> NoReturn:
    counts = next(iter(known.values())).counts
    if not counts:
        raise InvalidInputError(f"No standard here has a {what}. Leave this filter out.")
    close = titles_like(text, [name for values in known.values() for name in values.counts])
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    most = listed(sorted(counts, key=lambda name: (-counts[name], name)))
    raise InvalidInputError(f"No {what} here is {quoted(text)}.{hint} There are: {most}.")
