"""From a name as people write it to a filter by the values that the catalog really holds."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

from standards_mcp import Catalog, FieldValues, FilterExpression, InvalidInputError
from standards_mcp.catalog.vocabulary.names import folded, jurisdictions_named, titles_with

_JURISDICTION_FIELDS: Final = ("jurisdiction_title", "jurisdiction_id")
# A standard that stands in several sets has one of them for its own.
_SET_FIELDS: Final = (
    "standard_set_title",
    "standard_set_id",
    "also_in_set_titles",
    "also_in_set_ids",
)
_LONGEST_QUOTE: Final = 60
_MOST_NAMES: Final = 12
_MOST_HINTS: Final = 3

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

    A name may be cut after a word, or be its initials or a state's postal code: ``Common Core``,
    ``CCSS``, ``TX``.

    Raises:
        InvalidInputError: There is none; the message names those that there are.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, _JURISDICTION_FIELDS)
    title = _JURISDICTION_FIELDS[0]
    short = jurisdictions_named(text, known[title].counts)
    found = _equal(text, known) or ({title: short} if short else {})
    return _any_of(found or _unknown(text, known)) or _refuse(text, known, "jurisdiction")


async def set_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the standards of one set, by its id or its title.

    Raises:
        InvalidInputError: There is no such set; the message names those with a title like it.
        CatalogError: The catalog cannot be read.
    """
    known = await _values(catalog, _SET_FIELDS)
    found = _unknown(text, known) | _equal(text, known)
    return _any_of(found) or _refuse(text, known, "standard set")


def quoted(text: str) -> str:
    """Return what somebody typed between quotation marks, cut where it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")


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
    close = _like(text, [name for values in known.values() for name in values.counts])
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    most = sorted(counts, key=lambda name: (-counts[name], name))
    listed = ", ".join(map(repr, sorted(most[:_MOST_NAMES])))
    more = f" and {len(most) - _MOST_NAMES:,} more" if len(most) > _MOST_NAMES else ""
    raise InvalidInputError(f"No {what} here is {quoted(text)}.{hint} There are: {listed}{more}.")


def _like(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that have the words of a text, or else those that are spelled nearly so."""
    by_spelling = {folded(name): name for name in names}
    nearly = difflib.get_close_matches(folded(text), by_spelling, n=_MOST_HINTS)
    having = dict.fromkeys(titles_with(text, names))
    return list(having)[:_MOST_HINTS] or [by_spelling[each] for each in nearly]
