"""Search with the grade and the subject that the text names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from standards_mcp import FilterExpression
from standards_mcp.filters import combine, fields, parse_filter
from standards_mcp_catalog import Catalog, SearchHit, SearchResult
from standards_mcp_catalog.vocabulary.grades import spoken_levels
from standards_mcp_catalog.vocabulary.notation import codes_in
from standards_mcp_catalog.vocabulary.subjects import match_subjects

from .language import foreign_language
from .named import read_named
from .scope import not_loaded

_MOST_NAMED: Final = 3
"""This many standards of other grades are named where the named grade has none that fits."""


async def search_by_text(
    catalog: Catalog,
    text: str,
    count: int,
    given: FilterExpression | None,
    *,
    reads_grade: bool,
    reads_subject: bool,
) -> SearchResult:
    """Search for the topic of a text, among the standards of the grade and subject it names.

    A code in the text is clearer than a grade: its standard comes first. Notes of the result say
    how the text was read, and which other grades have standards that fit, if these hardly do.

    Args:
        reads_grade: True if the grade in the text counts, because the argument has none.
        reads_subject: The same for the subject.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    reads_grade = reads_grade and not _limits_grades(given)
    named = read_named(text, reads_grade=reads_grade, reads_subject=reads_subject)
    subjects = (
        match_subjects(named.subject, (await catalog.facets()).subjects) if named.subject else ()
    )
    scope = combine(
        {"education_levels": {"$in": list(named.levels)}} if named.levels else None,
        {"subject": {"$in": list(subjects)}} if subjects else None,
    )
    notes = list(_shortcomings(text, named.subject if not subjects else ""))
    result = await catalog.search(named.topic, count, combine(scope, given))
    if scope is None:
        if reads_grade and (grades := _several_grades(result.hits)):
            notes.append(f"They are of grades {grades}; give a grade to narrow the search.")
        return replace(result, notes=(*notes, *result.notes))
    scope_name = _scope_name(spoken_levels(named.levels), named.subject if subjects else "")
    if codes_in(text):
        by_code = [hit for hit in (await catalog.search(text, count, given)).hits if hit.score == 1]
        result = replace(result, hits=_each_once((*by_code, *result.hits))[:count])
    notes.insert(0, _note(scope_name, by_grade=bool(named.levels), by_subject=bool(subjects)))
    if not _fitting(result):
        wide = await catalog.search(named.topic, count, given)
        if not result.hits:
            notes[0] = (
                f"The text names {scope_name}, but no standard of it matches; these are others."
            )
            result = wide
        elif wide_hits := _fitting(wide):
            notes.insert(1, _elsewhere(scope_name, wide_hits))
    return replace(result, notes=(*notes, *result.notes))


def _fitting(result: SearchResult) -> list[SearchHit]:
    return [hit for hit in result.hits if hit.score >= result.weak_below]


def _several_grades(hits: Sequence[SearchHit]) -> str:
    """Return the grades of hits as people write them, if the hits are not all of the same."""
    levels = {hit.record.education_levels for hit in hits}
    return spoken_levels({level for each in levels for level in each}) if len(levels) > 1 else ""


def _shortcomings(text: str, missing_subject: str) -> tuple[str, ...]:
    """Return the reasons for which the search may have no fitting result, as sentences."""
    notes = [not_loaded(missing_subject)] if missing_subject else []
    if language := foreign_language(text):
        advice = "the standards here are in English: search again with an English text."
        notes.append(f"The text seems to be {language}, and {advice}")
    return tuple(notes)


def _limits_grades(given: FilterExpression | None) -> bool:
    return "education_levels" in fields(parse_filter(given))


def _each_once(hits: Iterable[SearchHit]) -> tuple[SearchHit, ...]:
    found = dict[str, SearchHit]()
    for hit in hits:
        found.setdefault(hit.record.id, hit)
    return tuple(found.values())


def _scope_name(grades: str, subject: str) -> str:
    return " and ".join(filter(None, (f"grade {grades}" if grades else "", subject)))


def _note(scope_name: str, *, by_grade: bool, by_subject: bool) -> str:
    arguments = [
        name for name, is_read in (("grade", by_grade), ("subject", by_subject)) if is_read
    ]
    turned_off = " and ".join(f"{name} = 'any'" for name in arguments)
    return (
        f"The text names {scope_name}, so only its standards were searched; pass {turned_off} to "
        "search all."
    )


def _elsewhere(scope_name: str, hits: Sequence[SearchHit]) -> str:
    names = (
        f"{hit.record.statement_notation or hit.record.id} "
        f"(grade {spoken_levels(hit.record.education_levels)})"
        for hit in hits[:_MOST_NAMED]
    )
    return f"Standards outside of {scope_name} fit better: {', '.join(names)}."
