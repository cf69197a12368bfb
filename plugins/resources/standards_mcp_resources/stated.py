"""Relations that sources state between standards: crosswalks, successors, progressions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from standards_mcp_catalog import Catalog, SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.relations import StatedRelation
from standards_mcp_catalog.vocabulary.relation_kinds import KINDS

from .answers import Envelope, Related
from .envelope import answer, related_as_stated

_MOST: Final = 50


async def relations_of(
    catalog: Catalog, record: StandardRecord, kinds: Collection[str] = KINDS
) -> list[StatedRelation]:
    """Return the stated relations of one standard, the closest kinds first.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    found = await catalog.relations([record], kinds, _MOST)
    return list(found[0])


def with_stated_first(
    found: Envelope[Related],
    stated: Sequence[StatedRelation],
    name: str,
    most: int,
    notes: Iterable[str],
) -> Envelope[Related]:
    """Put the stated relations before the results of *found*, each standard once.

    Args:
        name: The name of the requested standard.
        most: Maximum number of results of *found* to return.
        notes: Notes of the catalog.
    """
    if not stated:
        return found
    known = {each.identifier for each in stated}
    others = [each for each in found["results"] if each["_id"] not in known][:most]
    results = [*map(related_as_stated, stated), *others]
    more = f" {found['message']}" if others else ""
    return answer(results, f"{_sentence(stated, name)}{more}", notes)


def without(record: StandardRecord, result: SearchResult) -> SearchResult:
    """Return *result* without *record*; other standards with the same text stay."""
    hits: list[SearchHit] = []
    for hit in result.hits:
        same = [each for each in (hit.record, *hit.also_in) if each.id != record.id]
        if same:
            hits.append(replace(hit, record=same[0], also_in=tuple(same[1:])))
    return replace(result, hits=tuple(hits))


def _sentence(stated: Sequence[StatedRelation], name: str) -> str:
    count = len(stated)
    first = f"The first {count} relations" if count == _MOST else f"{count} relations"
    which = "1 relation" if count == 1 else first
    sentence = f"{which} of {name} that sources state (found_by stated), with the origin."
    missing = sum(each.record is None for each in stated)
    if missing:
        are = "leads to a standard that is" if missing == 1 else "lead to standards that are"
        sentence += f" {missing} {are} not loaded here; only the identifier is known."
    return sentence
