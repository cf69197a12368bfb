"""Find the standards of a grade that activities meet: by the codes they state, or by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.records import chunks
from standards_mcp_catalog.vocabulary.notation import codes_in
from standards_mcp_catalog.vocabulary.readings import is_code, readings, requests_in

from .scope import Scope

# Chosen and measured by `benchmarks/coverage.py`; the figures are in docs/benchmarks.md.
MET_SCORE: Final = 0.4
"""The best standard of an activity counts as met from this score on."""
_HITS: Final = 10
_LONGEST_CODES: Final = 512
_AT_A_TIME: Final = 8  # hides the latency of a remote store
Basis: TypeAlias = Literal["code", "meaning"]

ReportProgress: TypeAlias = Callable[[int, int], Awaitable[None]]
"""Called with the finished and the total number of activities."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A standard that an activity meets or may meet.

    Attributes:
        score: 1 for a stated code, else the score of the search, from 0 to 1.
        met: False for a hit that only shows how near the activity is.
    """

    id: str
    score: float
    met: bool
    basis: Basis


@dataclass(slots=True)
class Activity:
    """An activity, and what was found for it.

    Attributes:
        number: Its place in the caller's list, from 1.
        hits: The hits among the standards of the grade, best first.
        elsewhere: Codes of standards that are not among those of the grade.
        unknown: Codes that are not loaded.
    """

    number: int
    text: str
    hits: list[Hit] = field(default_factory=list[Hit])
    elsewhere: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Matches:
    """The result for all activities.

    Attributes:
        is_measured: False if the store's scores were never compared with people's judgement.
        notes: Sentences of the store, each once.
    """

    activities: Sequence[Activity]
    is_measured: bool
    notes: tuple[str, ...]


async def match_activities(
    catalog: Catalog, scope: Scope, texts: Sequence[tuple[int, str]], report: ReportProgress
) -> Matches:
    """Return the hits of activities, given as numbers and texts.

    An activity that states codes of the grade meets these standards, and is not searched for
    others.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    activities = [Activity(number, text) for number, text in texts]
    await _match_codes(catalog, scope, activities)
    searched = [each for each in activities if not each.hits and not _is_list_of_codes(each.text)]
    own = {record.id for record in scope.standards}
    notes, is_measured, done = dict[str, None](), True, len(activities) - len(searched)
    for chunk in chunks(searched, _AT_A_TIME):
        results = await asyncio.gather(
            *(catalog.search(each.text, _HITS, scope.filter) for each in chunk)
        )
        for activity, result in zip(chunk, results, strict=True):
            notes |= dict.fromkeys(result.notes)
            is_measured = is_measured and result.weak_below > 0
            for hit in result.hits:
                met = not activity.hits and hit.score >= MET_SCORE
                # The store puts the standard of a code first, with the score 1.
                basis: Basis = "code" if hit.score == 1 else "meaning"
                same_text = [record.id for record in (hit.record, *hit.also_in) if record.id in own]
                activity.hits += [Hit(id_, hit.score, met, basis) for id_ in same_text]
        done += len(chunk)
        await report(done, len(activities))
    return Matches(activities, is_measured, tuple(notes))


async def _match_codes(catalog: Catalog, scope: Scope, activities: Sequence[Activity]) -> None:
    codes = {each.number: _codes_of(each.text) for each in activities}
    possible = {
        code: [reading.code for reading in readings(code)]
        for code in dict.fromkeys(code for stated in codes.values() for code in stated)
    }
    looked_up = list(dict.fromkeys(text for texts in possible.values() for text in texts))
    found = dict(zip(looked_up, await catalog.find_all(looked_up), strict=True))
    nothing = list[StandardRecord]()
    records = {
        code: next((found[text] for text in texts if found[text]), nothing)
        for code, texts in possible.items()
    }
    for activity in activities:
        for code in codes[activity.number]:
            parts = _parts_in_scope(scope, records[code])
            if parts:
                met = (Hit(id_, 1.0, met=True, basis="code") for id_ in parts)
                activity.hits += [hit for hit in met if hit not in activity.hits]
            elif records[code]:
                activity.elsewhere.append(code)
            elif is_code(code) or _is_list_of_codes(activity.text):
                activity.unknown.append(code)


def _codes_of(text: str) -> tuple[str, ...]:
    return tuple(requests_in(text).names()) if _is_list_of_codes(text) else codes_in(text)


def _is_list_of_codes(text: str) -> bool:
    """Return True if *text* has codes and nothing else, such as ``3.NF.A.1, 3.NF.A.2``."""
    return len(text) <= _LONGEST_CODES and all(
        is_code(name) or codes_in(name) == (name,) for name in requests_in(text).names()
    )


def _parts_in_scope(scope: Scope, records: Sequence[StandardRecord]) -> list[str]:
    """Return the ids of the standards, or of their parts, that belong to the grade.

    A domain or a cluster covers nothing: to name it is no evidence for each of its standards.
    """
    named = {record.id for record in records}
    headings = {each.id for each in (*scope.domains.values(), *scope.clusters.values())}
    return [
        record.id
        for record in scope.standards
        if record.id in named or not (named - headings).isdisjoint(record.ancestor_ids)
    ]
