"""Search with the grade and the subject that the text names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from standards_mcp.filters import Node, combine, fields
from standards_mcp_catalog import Catalog, SearchHit, SearchResult
from standards_mcp_catalog.vocabulary.grades import spoken_levels
from standards_mcp_catalog.vocabulary.notation import codes_in
from standards_mcp_catalog.vocabulary.subjects import match_subjects

from .language import foreign_language
from .named import named_grades, named_subject
from .scope import not_loaded

# Higher scores for the named grade gained nothing on held-out sources, where 27 of 1,368 queries
# name one. A filter would hide near grades, which a teacher wants if nothing else fits.
_FITTING: Final = 0.5
"""Standards of the named grade come first if they have this share of the best score."""


async def search_by_text(
    catalog: Catalog,
    text: str,
    count: int,
    given: Node | None,
    *,
    reads_grade: bool,
    reads_subject: bool,
) -> SearchResult:
    """Search with a filter; rank the grade and the subject that the text names first.

    Args:
        reads_grade: True if the grade in the text counts, because the argument has none.
        reads_subject: The same for the subject.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    levels = named_grades(text) if reads_grade and "education_levels" not in fields(given) else ()
    subject = named_subject(text) if reads_subject else ""
    subjects = match_subjects(subject, (await catalog.facets()).subjects) if subject else ()
    named = combine(
        {"education_levels": {"$in": list(levels)}} if levels else None,
        {"subject": {"$in": list(subjects)}} if subjects else None,
    )
    notes = _shortcomings(text, subject if not subjects else "")
    if named is None:
        found = await catalog.search(text, count, given)
        return replace(found, notes=(*notes, *found.notes))
    narrow, wide = await asyncio.gather(
        catalog.search(text, count, combine(named, given)), catalog.search(text, count, given)
    )
    # A code in the text is clearer than a grade; its standards have the highest score there is.
    by_code = [hit for hit in wide.hits if hit.score == 1] if codes_in(text) else []
    best = max((hit.score for hit in wide.hits if hit not in by_code), default=0)
    fitting = [hit for hit in narrow.hits if hit.score >= _FITTING * best]
    hits = wide.hits
    if fitting:
        notes = (_note(spoken_levels(levels), subject if subjects else ""), *notes)
        hits = _each_once((*by_code, *fitting, *hits))[:count]
    return replace(wide, hits=hits, notes=(*notes, *wide.notes))


def _shortcomings(text: str, missing_subject: str) -> tuple[str, ...]:
    """Return the reasons for which the search may have no fitting result, as sentences."""
    notes = [not_loaded(missing_subject)] if missing_subject else []
    if language := foreign_language(text):
        advice = "the standards here are in English: search again with an English text."
        notes.append(f"The text seems to be {language}, and {advice}")
    return tuple(notes)


def _each_once(hits: Iterable[SearchHit]) -> tuple[SearchHit, ...]:
    found = dict[str, SearchHit]()
    for hit in hits:
        found.setdefault(hit.record.id, hit)
    return tuple(found.values())


def _note(grades: str, subject: str) -> str:
    names = [f"grade {grades}"] if grades else []
    arguments = ["grade"] if grades else []
    if subject:
        names.append(subject)
        arguments.append("subject")
    turned_off = " and ".join(f"{name} = 'any'" for name in arguments)
    return (
        f"The text names {' and '.join(names)}, which was ranked first. Pass {turned_off} to "
        "ignore it."
    )
