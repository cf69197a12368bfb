"""What to say of codes that a catalog does not have."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from standards_mcp_catalog import Catalog
from standards_mcp_catalog.vocabulary.families import Family, family_of
from standards_mcp_catalog.vocabulary.names import jurisdictions_named
from standards_mcp_catalog.vocabulary.readings import readings

_MOST_COMPARED: Final = 5
"""For so many codes the nearest are looked up, which takes a Pinecone a request each."""


async def reasons(catalog: Catalog, missing: Sequence[str]) -> dict[str, str]:
    """Return what helps on from each of these codes, "" where nothing is known of it.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    families = {text: _family(text) for text in missing}
    first_of_each = {family: text for text, family in reversed(families.items())}
    compared = list(dict.fromkeys((*first_of_each.values(), *missing)))[:_MOST_COMPARED]
    answers = await asyncio.gather(*(_nearest(catalog, text) for text in compared))
    nearest = dict(zip(compared, answers, strict=True))
    loaded = await _loaded(catalog, families, nearest)
    return {
        text: _load(family) if family and family not in loaded else _offer(nearest.get(text, ()))
        for text, family in families.items()
    }


def in_words(found: Mapping[str, str]) -> str:
    """Return all the codes, those with one reason together, each reason in brackets."""
    together: defaultdict[str, list[str]] = defaultdict(list)
    for text, reason in found.items():
        together[reason].append(f"'{text}'")
    groups = [", ".join(texts) + (f" ({why})" if why else "") for why, texts in together.items()]
    return "; ".join(groups)


def _family(text: str) -> Family | None:
    named = (family_of(reading.code) for reading in readings(text))
    return next((family for family in named if family), None)


async def _nearest(catalog: Catalog, text: str) -> list[str]:
    meant = readings(text)[-1].code
    codes = [record.statement_notation for record in await catalog.suggest(meant)]
    return [code for code in codes if code]


async def _loaded(
    catalog: Catalog, families: Mapping[str, Family | None], nearest: Mapping[str, Iterable[str]]
) -> set[Family]:
    loaded = {family for codes in nearest.values() for code in codes if (family := family_of(code))}
    asked = {family for family in families.values() if family} - loaded
    if asked:
        titles = {each.jurisdiction_title for each in (await catalog.sets()).sets}
        loaded |= {
            family
            for family in asked
            if any(jurisdictions_named(place, titles) for place in family.places)
        }
    return loaded


def _load(family: Family) -> str:
    return f"Family: {family.name}, not loaded here. To load: {family.source}"


def _offer(codes: Iterable[str]) -> str:
    return f"Nearest codes: {', '.join(codes)}" if codes else ""
