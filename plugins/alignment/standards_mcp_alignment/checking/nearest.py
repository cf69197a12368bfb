"""Find standards by meaning: for unknown codes, and for passages without a code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from standards_mcp_catalog import Catalog, SearchHit, StandardRecord

from . import passages
from .envelope import Nearest, SuggestedStandard, Suggestion
from .passages import Passage
from .resolving import Resolved, nearest_by_spelling
from .scope import Scope
from .transcript import Transcript

_MOST_UNKNOWN: Final = 8
"""So many unknown codes get the nearest codes by spelling."""
_MOST_BY_MEANING: Final = 3
"""So many of them also get the nearest standards by the words next to them: a search for each."""
_MOST_PASSAGES: Final = 3
_MOST_NEAREST: Final = 4
_MOST_MEANT: Final = 2
_MOST_HITS: Final = 3
_LONGEST_SEARCHED: Final = 1_000
LONGEST_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches the catalog within the scope of a lesson."""

    catalog: Catalog
    scope: Scope

    async def search(self, text: str) -> list[SearchHit]:
        """Return the best standards for a passage, without weak ones.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        words = text[:_LONGEST_SEARCHED]
        result = await self.catalog.search(words, _MOST_HITS, self.scope.filter())
        return [hit for hit in result.hits if hit.score >= result.weak_below]

    async def nearest(self, code: Resolved, words: str) -> list[Nearest]:
        """Return the standards that an unknown code may mean, the likeliest first.

        Args:
            words: The words next to the code, or "" if only its spelling counts.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        spelled = await nearest_by_spelling(self.catalog, code.candidate.asked)
        if inside := self.scope.jurisdictions:
            spelled.sort(key=lambda each: each.jurisdiction_title not in inside)
        hits = await self.search(words) if words else []
        meant = {hit.record.id: hit.record for hit in hits}
        near = {each.id: each for each in spelled}
        both = [near_as(each, "both") for id_, each in near.items() if id_ in meant]
        others = [near_as(each, "meaning") for id_, each in meant.items() if id_ not in near]
        others = others[:_MOST_MEANT]
        by_spelling = [near_as(each, "spelling") for id_, each in near.items() if id_ not in meant]
        return [*both, *by_spelling[: _MOST_NEAREST - len(both) - len(others)], *others]


async def nearest_of_unknown(
    searcher: Searcher, transcript: Transcript, codes: Sequence[Resolved]
) -> dict[str, list[Nearest]]:
    """Return the nearest standards of the unknown codes, by the texts that were looked up.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    places = [each.candidate for each in codes if each.candidate.end]
    unknown = {
        each.candidate.asked: each
        for each in reversed(codes)
        if not each.records and not each.missing_family
    }
    compared = list(reversed(unknown.values()))[:_MOST_UNKNOWN]
    words = [
        passages.words_beside(transcript.text, each.candidate, places)
        if each.candidate.end and index < _MOST_BY_MEANING
        else ""
        for index, each in enumerate(compared)
    ]
    found = await asyncio.gather(*map(searcher.nearest, compared, words))
    return {each.candidate.asked: near for each, near in zip(compared, found, strict=True)}


async def hits_without_codes(
    searcher: Searcher, transcript: Transcript, taken: Sequence[tuple[int, int]]
) -> list[tuple[Passage, list[SearchHit]]]:
    """Return the standards for the longest passages that have no code.

    Args:
        taken: The places of codes and quotations.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    parts = passages.without_codes(transcript.text, taken, _MOST_PASSAGES)
    hits = await asyncio.gather(*(searcher.search(each.text) for each in parts))
    return list(zip(parts, hits, strict=True))


def suggestion(
    transcript: Transcript, part: Passage, hits: Sequence[SearchHit], cited: set[str]
) -> list[Suggestion]:
    """Return the suggestion for a passage, without the standards that the lesson cites already."""
    standards = [_suggested(hit) for hit in hits if hit.record.id not in cited]
    if not standards:
        return []
    start, end = transcript.span(part.start, part.end)
    shown = shortened(part.text, LONGEST_SHOWN)
    return [{"passage": shown, "start": start, "end": end, "standards": standards}]


def near_as(
    record: StandardRecord, by: Literal["spelling", "meaning", "both", "successor"]
) -> Nearest:
    """Return a record as one of the nearest standards."""
    return {
        "code": record.statement_notation or record.id,
        "_id": record.id,
        "description": shortened(record.description, LONGEST_SHOWN),
        "by": by,
    }


def shortened(text: str, length: int) -> str:
    """Return *text* in one line, cut if it is longer than *length*."""
    joined = " ".join(text.split())
    return joined if len(joined) <= length else f"{joined[: length - 4].rstrip()} ..."


def _suggested(hit: SearchHit) -> SuggestedStandard:
    record = hit.record
    return {
        "code": record.statement_notation or record.id,
        "_id": record.id,
        "description": shortened(record.description, LONGEST_SHOWN),
        "score": round(hit.score, 4),
    }
