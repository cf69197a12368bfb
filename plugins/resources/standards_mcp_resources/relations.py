"""Find related standards: stated relations, siblings, other grades, other jurisdictions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp.filters import combine, matches, parse_filter
from standards_mcp_catalog import Catalog, SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.vocabulary.names import folded
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key
from standards_mcp_catalog.vocabulary.subjects import match_subjects

from .answers import Envelope, FoundBy, Related, Relation
from .envelope import answer, related, related_hit
from .grades import continuation, grade_name, grades_name, neighbouring_grade, strand_name
from .names import (
    name_of,
    namesakes,
    outside_first,
    sets_of_jurisdiction,
    standards_named,
    unknown_jurisdiction,
)
from .stated import relations_of, with_stated_first, without
from .tree import siblings_of

_SIMILAR: Final = "likeness in meaning (found_by meaning), with its score, which no source states"
_WEAK_NOTE: Final = "Even the nearest is not much like it, so check that it fits."
_MOST_HEADINGS: Final = 300
_LONGEST_HEADING: Final = 120
_LONGEST_QUERY: Final = 2_000
_MIN_SHARE_OF_BEST: Final = 0.8
"""Standards of another grade with a smaller share of the best score are dropped."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """A filter for the counterparts of a standard, with its reason."""

    filter: FilterExpression
    found_by: FoundBy
    reason: str


async def related_standards(
    catalog: Catalog, standard_id: str, relation: Relation, jurisdiction: str, most: int
) -> Envelope[Related]:
    """Return the standards that are related to the best match of an identifier.

    Raises:
        NotFoundError: The standard does not exist.
        InvalidInputError: The identifier or the jurisdiction is wrong, or a jurisdiction was given
            for another relation than ``elsewhere``.
        CatalogError: The catalog cannot be read.
    """
    if jurisdiction.strip() and relation != "elsewhere":
        raise InvalidInputError("jurisdiction goes with relation elsewhere only. Leave it out.")
    standards = await standards_named(catalog, standard_id)
    if jurisdiction.strip():
        standards = await outside_first(catalog, standards, jurisdiction)
    record, *others = standards
    if relation == "related":
        envelope = await _related(catalog, record, most)
    elif relation == "siblings":
        envelope = await _siblings(catalog, record)
    elif relation == "elsewhere":
        envelope = await _elsewhere(catalog, record, jurisdiction, most)
    else:
        step, kind = (1, "precedes") if relation == "next_grade" else (-1, "follows")
        stated = await relations_of(catalog, record, (kind,))
        envelope = await _in_grade(catalog, record, step, most + len(stated))
        envelope = with_stated_first(envelope, stated, name_of(record), most, catalog.notes())
    if others:
        envelope["message"] += f" {namesakes(others)}"
    return envelope


async def _related(catalog: Catalog, record: StandardRecord, most: int) -> Envelope[Related]:
    """Return the stated relations of a standard, then similar standards of any jurisdiction."""
    stated = await relations_of(catalog, record)
    expression = {"is_leaf": True} if record.is_leaf else {}
    count = most + len(stated)
    result = without(record, await _nearest(catalog, record, expression, count + 1))
    hits = [related_hit(hit, "meaning") for hit in result.hits[:count]]
    message = f"Then {_SIMILAR}." if stated else f"No source states any. This is {_SIMILAR}."
    if not hits:
        message = "No source states a relation, and no standard here has a similar meaning."
    envelope = answer(hits, message, (*result.notes, *catalog.notes()))
    return with_stated_first(envelope, stated, name_of(record), most, catalog.notes())


async def _siblings(catalog: Catalog, record: StandardRecord) -> Envelope[Related]:
    """Return the siblings of a standard, in order; for a root, the roots of its strand."""
    siblings = await siblings_of(catalog, record)
    where = "under the same heading"
    if not record.parent_id:
        strand = _strand_of(record.statement_notation)
        same = [each for each in siblings if _strand_of(each.statement_notation) == strand]
        siblings = same or siblings
        where = f"at the top of {record.standard_set_title}"
    which = f"siblings of {name_of(record)} {where}"
    message = f"The {which}, in order." if siblings else f"No {which}."
    return answer([related(each, "tree") for each in siblings], message, catalog.notes())


async def _in_grade(
    catalog: Catalog, record: StandardRecord, step: int, most: int
) -> Envelope[Related]:
    """Return the continuation of a standard in the next (*step* 1) or the previous grade (-1)."""
    level = neighbouring_grade(record.education_levels, step)
    if level is None:
        return answer((), _no_grade(record, step))
    counterpart = await _by_code(catalog, record, level, step)
    if counterpart is not None:
        grades = grades_name(counterpart.education_levels)
        message = (
            f"In {grades} {name_of(counterpart)} has the same number in the strand, by its code."
        )
        return answer([related(counterpart, "code")], message, catalog.notes())
    async for scope in _scopes(catalog, record, level, step):
        result = await _nearest(catalog, record, scope.filter, most)
        if hits := _without_fillers(result, scope.found_by):
            results = [related_hit(hit, scope.found_by) for hit in hits]
            is_weak = hits[0].score < result.weak_below
            reason = f"{scope.reason} {_WEAK_NOTE}" if is_weak else scope.reason
            return answer(results, reason, (*result.notes, *catalog.notes()))
    return answer((), await _nothing_in_grade(catalog, record, level, step), catalog.notes())


def _without_fillers(result: SearchResult, found_by: FoundBy) -> list[SearchHit]:
    """Return the best hit and those with a similar score.

    A weak best hit counts only if codes or a heading determine its strand.
    """
    if not result.hits:
        return []
    best, *others = result.hits
    min_score = max(result.weak_below, _MIN_SHARE_OF_BEST * best.score)
    best_counts = found_by != "meaning" or best.score >= result.weak_below
    return [best, *(hit for hit in others if hit.score >= min_score)] if best_counts else []


async def _nothing_in_grade(catalog: Catalog, record: StandardRecord, level: str, step: int) -> str:
    which = f"of {record.jurisdiction_title} for {grade_name(level)} in {record.subject}"
    advice = "Try relation elsewhere, or browse_standards."
    if await catalog.select(_grade_filter(record, level, step), 1):
        return f"No standard {which} resembles {name_of(record)}. {advice}"
    grades = grades_name(record.education_levels)
    return f"{name_of(record)} is for {grades}, and no standards {which} are here. {advice}"


async def _elsewhere(
    catalog: Catalog, record: StandardRecord, jurisdiction: str, most: int
) -> Envelope[Related]:
    """Return stated and similar standards of another jurisdiction, or of all others.

    Raises:
        InvalidInputError: The jurisdiction is unknown, or the standard's own.
    """
    place = await _place_filter(catalog, record, jurisdiction)
    stated = [
        each
        for each in await relations_of(catalog, record)
        if _is_in(place, each.record) or (each.record is None and not jurisdiction.strip())
    ]
    envelope = await _similar_in(catalog, record, place, most + len(stated))
    return with_stated_first(envelope, stated, name_of(record), most, catalog.notes())


def _is_in(place: FilterExpression, record: StandardRecord | None) -> bool:
    return record is not None and matches(parse_filter(place), record.to_dict())


async def _similar_in(
    catalog: Catalog, record: StandardRecord, place: FilterExpression, most: int
) -> Envelope[Related]:
    subjects = match_subjects(record.subject, (await catalog.values("subject")).counts)
    subject = {"subject": {"$in": list(subjects)}} if subjects else None
    levels = {"education_levels": {"$in": list(record.education_levels)}}
    leaf = {"is_leaf": True} if record.is_leaf else None
    scopes = [
        (combine(place, subject, leaf, levels) or place, "of the same grade"),
        (
            combine(place, subject, leaf) or place,
            "of other grades, because none of the same resembles it",
        ),
    ]
    for expression, which in scopes[0 if record.education_levels else 1 :]:
        result = await _nearest(catalog, record, expression, most)
        if result.hits:
            message = (
                f"The nearest by meaning in other jurisdictions, {which}: a likeness only, which "
                "no source states."
            )
            hits = [related_hit(hit, "meaning") for hit in result.hits]
            return answer(hits, message, (*result.notes, *catalog.notes()))
    message = (
        "No other jurisdiction here has a similar standard. browse_standards without parent lists "
        "the loaded ones; the administrator adds more with `standards-mcp data import`."
    )
    return answer((), message, catalog.notes())


async def _place_filter(
    catalog: Catalog, record: StandardRecord, jurisdiction: str
) -> FilterExpression:
    if not jurisdiction.strip():
        return {"jurisdiction_id": {"$ne": record.jurisdiction_id}}
    all_sets = await catalog.sets()
    jurisdiction_ids = {
        each.jurisdiction_id for each in sets_of_jurisdiction(jurisdiction, all_sets.sets)
    }
    if not jurisdiction_ids:
        raise unknown_jurisdiction(jurisdiction.strip(), all_sets.sets)
    others = sorted(jurisdiction_ids - {record.jurisdiction_id})
    if not others:
        raise InvalidInputError(
            f"{name_of(record)} is of {record.jurisdiction_title} itself. Name another "
            "jurisdiction, or leave it out for all others."
        )
    return {"jurisdiction_id": {"$in": others}}


async def _by_code(
    catalog: Catalog, record: StandardRecord, level: str, step: int
) -> StandardRecord | None:
    code = continuation(record.statement_notation or "", level, step).code
    matches = await catalog.find(code) if code else []
    own = [each for each in matches if each.jurisdiction_id == record.jurisdiction_id]
    return next((each for each in own if level in each.education_levels), None)


async def _scopes(
    catalog: Catalog, record: StandardRecord, level: str, step: int
) -> AsyncIterator[_Scope]:
    """Yield the scopes that may continue a standard in a grade, the likeliest first."""
    grade, kind = _grade_filter(record, level, step), _kind_filter(record)
    target = continuation(record.statement_notation or "", level, step)
    for strands in target.strands:
        how = "goes on in" if step > 0 else "comes from"
        where = target.where or f"The strand {how} {' and '.join(map(strand_name, strands))}"
        place = {"jurisdiction_id": record.jurisdiction_id} if target.where else grade
        yield _Scope(
            {"$and": [place, kind, {PREFIXES_FIELD: {"$in": list(strands)}}]},
            "strand",
            f"{target.note} {where}; nearest in meaning first.".lstrip(),
        )
    if not target.strands and (heading := await _heading(catalog, record, grade)):
        name, ids = heading
        yield _Scope(
            {"$and": [grade, kind, {"ancestor_ids": {"$in": ids}}]},
            "heading",
            f"Under {name!r} in {grade_name(level)} too; nearest in meaning first.",
        )
    ending = target.note or f"No strand of {grade_name(level)} is known to continue it."
    near = f"These are the nearest by meaning in {record.subject} of {grade_name(level)}."
    reason = f"{ending} {near}"
    yield _Scope({"$and": [grade, kind]}, "meaning", reason)
    yield _Scope(grade, "meaning", reason)


async def _heading(
    catalog: Catalog, record: StandardRecord, grade: FilterExpression
) -> tuple[str, list[str]] | None:
    """Return the nearest heading above a standard that the grade has too, and its ids there."""
    above = await catalog.fetch(record.ancestor_ids) if record.ancestor_ids else []
    headings = [each for each in above if len(each.description) <= _LONGEST_HEADING]
    if not headings:
        return None
    candidates = await catalog.select({"$and": [grade, {"is_leaf": False}]}, _MOST_HEADINGS)
    by_name: dict[str, list[str]] = {}
    for each in candidates:
        by_name.setdefault(folded(each.description), []).append(each.id)
    for each in reversed(headings):
        if ids := by_name.get(folded(each.description)):
            return each.description, ids
    return None


async def _nearest(
    catalog: Catalog, record: StandardRecord, expression: FilterExpression, most: int
) -> SearchResult:
    if not await catalog.select(expression, 1):
        return SearchResult(hits=())  # a search costs as much without results as with results
    return await catalog.search(record.description[:_LONGEST_QUERY], most, expression)


def _grade_filter(record: StandardRecord, level: str, step: int) -> FilterExpression:
    # Exclude standards for both grades, such as anchor standards: they show no progress.
    return {
        "jurisdiction_id": record.jurisdiction_id,
        "subject": record.subject,
        "education_levels": {"$eq": level, "$ne": neighbouring_grade((level,), -step)},
    }


def _kind_filter(record: StandardRecord) -> FilterExpression:
    if record.statement_label:
        return {"statement_label": record.statement_label}
    return {"is_leaf": record.is_leaf}


def _no_grade(record: StandardRecord, step: int) -> str:
    where = "after" if step > 0 else "before"
    grades = grades_name(record.education_levels)
    return f"{name_of(record)} is for {grades}; no grade of school comes {where} that."


def _strand_of(code: str | None) -> str:
    return canonical_key(code or "").rpartition(".")[0]
