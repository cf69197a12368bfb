"""Look up the candidates of a lesson, and find the nearest standards for unknown codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.matching import Match, match
from standards_mcp_catalog.vocabulary.families import Family, family_of_place
from standards_mcp_catalog.vocabulary.notation import canonical_key
from standards_mcp_catalog.vocabulary.readings import (
    Request,
    codes_of_places,
    family_meant,
    readings,
    requests_in,
)

from .finding import Candidate, Evidence
from .scope import Scope

_LEAST_LETTERS: Final = 2


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
    return await _confirmed(catalog, resolved)


async def resolve_codes(catalog: Catalog, codes: str, scope: Scope) -> list[Resolved]:
    """Return the codes of a list, each as `get_standard_details` understands it.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    resolved = [
        _resolved(Candidate(each.text, 0, 0, each.text, Evidence.CERTAIN), {each.text: each}, scope)
        for each in await match(catalog, requests_in(codes))
    ]
    return await _confirmed(catalog, resolved)


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


async def _confirmed(catalog: Catalog, codes: Sequence[Resolved]) -> list[Resolved]:
    """Return the codes without those that only look like one."""
    # A code that is certain in one place of a lesson is certain in every other.
    certain = {
        each.candidate.asked for each in codes if each.candidate.evidence is Evidence.CERTAIN
    }
    probes = dict[str, tuple[str, ...]]()
    for each in codes:
        asked = each.candidate.asked
        if each.records:
            continue
        if each.missing_family:
            # Another state may have codes in this form: then the neighbours exist.
            probes[asked] = _neighbours(asked)
        elif each.candidate.evidence is Evidence.FAMILIAR and asked not in certain:
            probes[asked] = (*_neighbours(asked), *_relatives(asked))
    familiar = await _with_any(catalog, probes)
    return [
        replace(each, missing_family=None) if each.candidate.asked in familiar else each
        for each in codes
        if each.records or each.candidate.asked in certain | familiar
    ]


async def _with_any(catalog: Catalog, wanted: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the keys of *wanted* for which a standard has one of the codes."""
    codes = list(dict.fromkeys(code for each in wanted.values() for code in each))
    found = dict(zip(codes, await catalog.find_all(codes), strict=True)) if codes else {}
    return {asked for asked, each in wanted.items() if any(found[code] for code in each)}


def _neighbours(code: str) -> tuple[str, ...]:
    """Return the heading of a code, if it has a letter, and codes that it probably has."""
    heading, _, last = canonical_key(code).rpartition(".")
    if not any(map(str.isalpha, heading)):
        return ()
    before = [str(int(last) - 1)] if last.isdecimal() and int(last) > 1 else []
    return (heading, *(f"{heading}.{each}" for each in dict.fromkeys((*"123AB", *before))))


def _relatives(code: str) -> tuple[str, ...]:
    """Return codes that the same publisher probably has in the same grade or subject."""
    family = ".".join(canonical_key(code).split(".")[:2])
    if sum(map(str.isalpha, family)) < _LEAST_LETTERS:
        return ()
    return (family, *(f"{family}.{each}" for each in ("1", "A", "1.1", "2.1", "1.A", "A.1")))
