"""Look up the candidates of a lesson, and find the nearest standards for unknown codes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.matching import Match, match
from standards_mcp_catalog.vocabulary.families import Family, family_of_place
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key
from standards_mcp_catalog.vocabulary.readings import (
    Request,
    codes_of_places,
    family_meant,
    readings,
    requests_in,
)

from .finding import Candidate, Evidence
from .scope import Scope

_MOST_COMPARED: Final = 10
"""So many codes that are not found are compared with the headings of the catalog."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A code of the lesson, looked up.

    Attributes:
        candidate: The code in the lesson.
        records: The standards with this code, best first; empty if it is unknown.
        place: The state before the code, if it is none of the records' jurisdictions.
        missing_family: The family of the code, if it is not loaded.
    """

    candidate: Candidate
    records: tuple[StandardRecord, ...] = ()
    place: str = ""
    missing_family: Family | None = None


async def resolve(
    catalog: Catalog, candidates: Sequence[Candidate], scope: Scope
) -> list[Resolved]:
    """Return the candidates that are codes, in their order.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    if not candidates:
        return []
    requests = {each.asked: _request(each) for each in candidates}
    found = await match(catalog, Request("", (), tuple(requests.values())))
    matches = {each.text: each for each in found}
    resolved = [_resolved(each, matches, scope) for each in candidates]
    # A code that is certain in one place of a lesson is certain in every other.
    certain = {each.asked for each in candidates if each.evidence is Evidence.CERTAIN}
    missing = {each.candidate.asked: each for each in resolved if not each.records}
    doubtful = [
        asked
        for asked, each in missing.items()
        if each.candidate.evidence is Evidence.FAMILIAR and asked not in certain
    ]
    not_loaded = [asked for asked, each in missing.items() if each.missing_family]
    familiar, loaded = await asyncio.gather(
        _with_beginnings(catalog, doubtful, _beginnings),
        # Another state may have codes of this family: then its codes are loaded.
        _with_beginnings(catalog, not_loaded, _headings),
    )
    return [
        replace(each, missing_family=None) if each.candidate.asked in loaded else each
        for each in resolved
        if each.records or each.candidate.asked in certain | familiar
    ]


async def resolve_codes(catalog: Catalog, codes: str, scope: Scope) -> list[Resolved]:
    """Return the codes of a list, each as `get_standard_details` understands it.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    return [
        _resolved(Candidate(each.text, 0, 0, each.text, Evidence.CERTAIN), {each.text: each}, scope)
        for each in await match(catalog, requests_in(codes))
    ]


async def nearest_by_spelling(catalog: Catalog, asked: str) -> list[StandardRecord]:
    """Return the standards whose codes are nearest to an unknown one.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    return await catalog.suggest(readings(asked)[-1].code)


def _request(candidate: Candidate) -> Request:
    text, asked = candidate.text, candidate.asked
    if text == asked:
        return Request(asked, readings(asked))
    of_place = tuple(dict.fromkeys((*readings(asked), *codes_of_places(asked))))
    return Request(asked, of_place, (Request(text, readings(text)),))


def _resolved(candidate: Candidate, matches: Mapping[str, Match], scope: Scope) -> Resolved:
    asked, place = candidate.asked, ""
    hit = matches.get(asked)
    if hit is None:  # nothing has the code with its label
        hit, place = matches.get(candidate.text, Match(candidate.text)), _place_before(asked)
    elif hit.reading:
        place = hit.reading.in_place_of
    family = family_of_place(place) if place else None
    if family is None and not hit.records:
        family = family_meant(asked) or scope.missing_family
    missing = family if family and not scope.is_loaded(family) else None
    return Resolved(candidate, tuple(hit.records), place, missing)


def _place_before(asked: str) -> str:
    """Return the state or the body that a text names before a code, or ""."""
    return next((each.places[0] for each in codes_of_places(asked) if each.places), "")


async def _with_beginnings(
    catalog: Catalog, codes: Sequence[str], beginnings_of: Callable[[str], list[str]]
) -> set[str]:
    """Return the codes that begin as a standard in the catalog does."""
    wanted = {code: beginnings_of(code) for code in codes[:_MOST_COMPARED]}
    wanted = {code: beginnings for code, beginnings in wanted.items() if beginnings}
    found = await asyncio.gather(
        *(catalog.select({PREFIXES_FIELD: {"$in": each}}, 1) for each in wanted.values())
    )
    return {code for code, records in zip(wanted, found, strict=True) if records}


def _headings(code: str) -> list[str]:
    """Return the heading of a code, if it has a letter."""
    heading = canonical_key(code).rpartition(".")[0]
    return [heading] if any(map(str.isalpha, heading)) else []


def _beginnings(code: str) -> list[str]:
    """Return the heading of a code, and its first two segments if they have two letters."""
    family = ".".join(canonical_key(code).split(".")[:2])
    return [*_headings(code), *([family] if sum(map(str.isalpha, family)) > 1 else [])]
