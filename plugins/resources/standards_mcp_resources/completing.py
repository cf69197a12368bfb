"""Complete ids and codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from standards_mcp_catalog import Catalog
from standards_mcp_catalog.vocabulary.names import folded, jurisdictions_named
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key

from .tree import code_order

_MAX_VALUES: Final = 100
"""Maximum number of values in one completion, by the protocol."""


async def set_ids(catalog: Catalog, typed: str) -> list[str]:
    """Return the ids of sets whose id or title begins with a text, then those that contain it.

    The title of the jurisdiction counts, too. A name such as ``FL`` selects all of its sets.
    """
    wanted = folded(typed)
    first_ids, other_ids = list[str](), list[str]()
    all_sets = (await catalog.sets()).sets
    jurisdictions = jurisdictions_named(typed, {each.jurisdiction_title for each in all_sets})
    for each in all_sets:
        names = (folded(each.id), folded(each.title), folded(each.jurisdiction_title))
        if each.jurisdiction_title in jurisdictions or any(
            name.startswith(wanted) for name in names
        ):
            first_ids.append(each.id)
        elif any(wanted in name for name in names):
            other_ids.append(each.id)
    return first_ids + other_ids


async def standard_ids(catalog: Catalog, typed: str) -> list[str]:
    """Return the codes that begin with a text, in full or from the grade on.

    If no code matches, return the ids that begin with the text.
    """
    text = typed.strip().casefold()
    values = await catalog.values("statement_notation")
    codes = _ordered(code for code in values.counts if _fits(text, code.casefold()))
    if not values.complete:
        codes += await _codes_under(catalog, typed)
    if not codes:
        codes = _ordered(
            each
            for each in (await catalog.values("_id")).counts
            if each.casefold().startswith(text)
        )
    return list(dict.fromkeys(codes))


async def _codes_under(catalog: Catalog, typed: str) -> list[str]:
    """Return codes that begin with *typed*, for a catalog that cannot list all of its codes."""
    key = canonical_key(typed)
    found = await catalog.select({PREFIXES_FIELD: key}, _MAX_VALUES) if key else []
    return _ordered(each.statement_notation for each in found if each.statement_notation)


def _fits(text: str, code: str) -> bool:
    return code.startswith(text) or f".{text}" in code


def _ordered(codes: Iterable[str]) -> list[str]:
    return sorted(codes, key=code_order)
