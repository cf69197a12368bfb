"""What sources state about a standard and others: crosswalks, successors, progressions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from standards_mcp_catalog import Catalog, SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.relations import KINDS, StatedRelation

from .envelope import Envelope, Related, answer, related_as_stated

_MOST: Final = 50


async def relations_of(
    catalog: Catalog, record: StandardRecord, kinds: Collection[str] = KINDS
) -> list[StatedRelation]:
    """Return what is stated of one standard, the closest kinds first.

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
    """Return the first of *found* behind what is stated; what is in both is only stated.

    Args:
        name: What to call the standard that was asked about.
        most: How many of *found* to return.
        notes: What the catalog tells about its answers.
    """
    if not stated:
        return found
    known = {each.identifier for each in stated}
    others = [each for each in found["results"] if each["_id"] not in known][:most]
    results = [*map(related_as_stated, stated), *others]
    more = f" {found['message']}" if others else ""
    return answer(results, f"{_told(stated, name)}{more}", notes)


def without(record: StandardRecord, result: SearchResult) -> SearchResult:
    """Return *result* without *record*; others with the same text stay."""
    hits: list[SearchHit] = []
    for hit in result.hits:
        same = [each for each in (hit.record, *hit.also_in) if each.id != record.id]
        if same:
            hits.append(replace(hit, record=same[0], also_in=tuple(same[1:])))
    return replace(result, hits=tuple(hits))


def _told(stated: Sequence[StatedRelation], name: str) -> str:
    count = len(stated)
    first = f"The first {count} relations" if count == _MOST else f"{count} relations"
    which = "1 relation" if count == 1 else first
    told = f"{which} of {name} that sources state (found_by stated), with the origin."
    missing = sum(each.record is None for each in stated)
    if missing:
        are = "leads to a standard that is" if missing == 1 else "lead to standards that are"
        told += f" {missing} {are} not loaded here, of which only the identifier is known."
    return told
