"""Turn names as people write them into filters by the values in the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp_catalog import Catalog, FieldValues
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    folded,
    jurisdictions_meant,
    jurisdictions_named,
    listed,
    names_of_place,
    quoted,
    titles_like,
)

_JURISDICTION_FIELDS: Final = ("jurisdiction_title", "jurisdiction_id")
# A standard in several sets has a main set and others.
_SET_FIELDS: Final = (
    "standard_set_title",
    "standard_set_id",
    "also_in_set_titles",
    "also_in_set_ids",
)
_KnownValues: TypeAlias = Mapping[str, FieldValues]
_Matches: TypeAlias = dict[str, Sequence[str]]


async def named_value_filter(field: str, catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the records whose *field* is *text*, ignoring case.

    Raises:
        InvalidInputError: No record has this value; the message names existing values.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, (field,))
    return _any_of(_equal_values(text, known) or _unverified(text, known)) or _refuse(
        text, known, field
    )


async def jurisdiction_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the standards of a state or body, by its name or its id.

    A name may also be a postal code, a publisher, initials, or a name that is cut after a word:
    ``TX``, ``CPALMS``, ``CCSS``, ``Common Core``. If the catalog cannot list all jurisdictions,
    the filter has every name of the place.

    Raises:
        InvalidInputError: No jurisdiction matches, or several do; the message names existing ones.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, _JURISDICTION_FIELDS)
    title, id_ = _JURISDICTION_FIELDS
    titles = known[title].counts
    by_id = _equal_values(text, {id_: known[id_]})
    if by_id and not jurisdictions_named(text, titles):
        return _any_of(by_id) or {}
    if not titles and known[title].complete:
        _refuse(text, known, "jurisdiction")
    try:
        matches: _Matches = {title: jurisdictions_meant(text, titles)}
    except JurisdictionNameError as error:
        if known[title].complete or jurisdictions_named(text, titles):
            raise InvalidInputError(str(error)) from None
        matches = {}
    if not known[title].complete:
        spellings = dict.fromkeys((*matches.get(title, ()), text.strip(), *names_of_place(text)))
        matches = {title: list(spellings), id_: [text.strip()]}
    return _any_of(matches | by_id) or {}


async def set_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the standards of one set, by its id or its title.

    Raises:
        InvalidInputError: The set does not exist; the message names sets with similar titles.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, _SET_FIELDS)
    matches = _unverified(text, known) | _equal_values(text, known)
    return _any_of(matches) or _refuse(text, known, "standard set")


async def _values(catalog: Catalog, fields: Sequence[str]) -> _KnownValues:
    return {field: await catalog.values(field) for field in fields}


def _equal_values(text: str, known: _KnownValues) -> _Matches:
    """Return, by field, the values equal to *text*, ignoring case, spaces and dashes of a GUID."""
    wanted = folded(text)
    matches = {
        field: [value for value in values.counts if folded(value) == wanted]
        for field, values in known.items()
    }
    return {field: values for field, values in matches.items() if values}


def _unverified(text: str, known: _KnownValues) -> _Matches:
    """Return *text* for each field whose values the catalog cannot list completely."""
    return {field: [text.strip()] for field, values in known.items() if not values.complete}


def _any_of(matches: _Matches) -> FilterExpression | None:
    conditions = [{field: {"$in": list(values)}} for field, values in matches.items()]
    return {"$or": conditions} if len(conditions) > 1 else next(iter(conditions), None)


def _refuse(text: str, known: _KnownValues, what: str) -> NoReturn:
    counts = next(iter(known.values())).counts
    if not counts:
        raise InvalidInputError(f"No standard here has a {what}. Leave this filter out.")
    close = titles_like(text, [name for values in known.values() for name in values.counts])
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    most = listed(sorted(counts, key=lambda name: (-counts[name], name)))
    raise InvalidInputError(f"No {what} here is {quoted(text)}.{hint} There are: {most}.")
