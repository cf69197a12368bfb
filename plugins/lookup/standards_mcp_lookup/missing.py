"""Explain why codes are missing: their family is not loaded, or they are mistyped."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from standards_mcp_catalog import Catalog
from standards_mcp_catalog.vocabulary.families import Family, family_of
from standards_mcp_catalog.vocabulary.names import jurisdictions_named
from standards_mcp_catalog.vocabulary.readings import family_meant, readings

_MOST_COMPARED: Final = 5
"""Number of missing codes to find the nearest codes for, with one request to Pinecone each."""


async def reasons(catalog: Catalog, missing: Sequence[str]) -> dict[str, str]:
    """Return advice for each of these codes, or "" if there is none.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    families = {text: family_meant(text) for text in missing}
    first_of_each = {family: text for text, family in reversed(families.items())}
    compared = list(dict.fromkeys((*first_of_each.values(), *missing)))[:_MOST_COMPARED]
    answers = await asyncio.gather(*(_nearest(catalog, text) for text in compared))
    nearest = dict(zip(compared, answers, strict=True))
    loaded = await _loaded(catalog, families, nearest)
    return {
        text: _import_advice(family)
        if family and family not in loaded
        else _nearest_codes(nearest.get(text, ()))
        for text, family in families.items()
    }


def by_reason(found: Mapping[str, str]) -> str:
    """Join the codes for a sentence, each group with its common reason in brackets."""
    groups_by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for text, reason in found.items():
        groups_by_reason[reason].append(f"'{text}'")
    groups = [
        ", ".join(texts) + (f" ({why})" if why else "") for why, texts in groups_by_reason.items()
    ]
    return "; ".join(groups)


async def _nearest(catalog: Catalog, text: str) -> list[str]:
    likely_code = readings(text)[-1].code
    codes = [record.statement_notation for record in await catalog.suggest(likely_code)]
    return [code for code in codes if code]


async def _loaded(
    catalog: Catalog, families: Mapping[str, Family | None], nearest: Mapping[str, Iterable[str]]
) -> set[Family]:
    loaded = {family for codes in nearest.values() for code in codes if (family := family_of(code))}
    unconfirmed = {family for family in families.values() if family} - loaded
    if unconfirmed:
        titles = {each.jurisdiction_title for each in (await catalog.sets()).sets}
        loaded |= {
            family
            for family in unconfirmed
            if any(jurisdictions_named(place, titles) for place in family.places)
        }
    return loaded


def _import_advice(family: Family) -> str:
    return f"Family: {family.name}, not loaded here. To load: {family.source}"


def _nearest_codes(codes: Iterable[str]) -> str:
    return f"Nearest codes: {', '.join(codes)}" if codes else ""
