"""Search by the topic of a text, within the grade, subject and publisher that the text names.

If the catalog has no standards of the named subject, grade or state, the message says so first, and
all results are marked as weak, because they are about something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from standards_mcp import FilterExpression
from standards_mcp.filters import Node, combine, fields, parse_filter
from standards_mcp_catalog import Catalog, Facets, SearchHit, SearchResult
from standards_mcp_catalog.vocabulary.families import family_of_place
from standards_mcp_catalog.vocabulary.grades import spoken_levels
from standards_mcp_catalog.vocabulary.named import NamedScope, read_named
from standards_mcp_catalog.vocabulary.names import jurisdictions_named
from standards_mcp_catalog.vocabulary.notation import codes_in
from standards_mcp_catalog.vocabulary.subjects import match_subjects

from .languages import Reading, read_text
from .scope import grade_not_loaded, levels_filter, subject_not_loaded, subjects_filter

_MAX_BETTER: Final = 3
"""Number of better standards outside the named scope that a note lists."""
# Measured by `scripts/measure_loaded.py`.
_MIN_MISSING_SHARE: Final = 0.2
"""Minimum total probability of the subjects that are not loaded, to report one as missing."""
_MIN_MISSING_SHARE_TRANSLATED: Final = 0.5
"""The same for a text that was translated word by word: its subject is less certain."""
_CLEAR_MATCH: Final = 0.5
"""A standard with this score fits, whatever subject the text may be about."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search for a text.

    Attributes:
        result: The hits; its notes explain the interpretation of the text.
        missing: Sentences on requested standards that are not loaded, with the command that loads
            them. If there are any, all hits count as weak.
        text: The searched text, in English.
        language: The language of the original, if it was translated, or an empty string.
    """

    result: SearchResult
    missing: tuple[str, ...] = ()
    text: str = ""
    language: str = ""


async def search_by_text(
    catalog: Catalog,
    text: str,
    count: int,
    base_filter: Node | None,
    *,
    reads_grade: bool,
    reads_subject: bool,
) -> Answer:
    """Search for the topic of a text, among the standards of the grade and subject it names.

    A text in a language of `languages.translation` is searched in English. A code in the text is
    clearer than a grade: its standard comes first.

    Args:
        base_filter: The filter of the tool's arguments.
        reads_grade: True if the grade in the text counts, because the argument has none.
        reads_subject: The same for the subject.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    reading = read_text(text)
    text, notes = reading.text, _reading_notes(reading)
    reads_grade = reads_grade and "education_levels" not in fields(base_filter)
    read = partial(read_named, reads_grade=reads_grade, reads_subject=reads_subject)
    named, scope, result = await _search_named(catalog, read, text, count, base_filter)
    if result.read_as:
        text = result.read_as
        notes.append(f"Read as: {text}.")
    missing = scope.missing
    if not missing and reads_subject and not named.subject:
        min_share = _MIN_MISSING_SHARE_TRANSLATED if reading.language else _MIN_MISSING_SHARE
        missing = await _missing_by_topic(catalog, result, min_share)
    if scope.expression is not None and not missing:
        result, scope_notes = await _within_scope(
            catalog, scope, named.topic, count, base_filter, result
        )
        notes += scope_notes
    elif reads_grade and not missing and (grades := _several_grades(result.hits)):
        notes.append(f"They are of grades {grades}; give a grade to narrow the search.")
    # Without a scope, the text itself was searched, and the store puts its codes first.
    if codes_in(text) and (named.topic != text or scope.expression is not None):
        by_code = [
            hit for hit in (await catalog.search(text, count, base_filter)).hits if hit.score == 1
        ]
        result = replace(result, hits=_each_once((*by_code, *result.hits))[:count])
    notes += result.notes
    weak_below = math.inf if missing else result.weak_below
    result = replace(result, notes=tuple(notes), weak_below=weak_below)
    return Answer(result, missing, text, reading.language)


async def _search_named(
    catalog: Catalog,
    read: Callable[[str], NamedScope],
    text: str,
    count: int,
    base_filter: Node | None,
) -> tuple[NamedScope, _Scope, SearchResult]:
    """Search within the scope that a text names, or that it names after spelling correction."""
    named = read(text)
    scope = await _scope(catalog, named, base_filter)
    result = await catalog.search(named.topic, count, combine(scope.expression, base_filter))
    corrected = result.read_as
    if corrected and named.topic == text and read(corrected).topic != corrected:
        named, scope, result = await _search_named(catalog, read, corrected, count, base_filter)
        result = replace(result, read_as=corrected)
    return named, scope, result


async def _within_scope(
    catalog: Catalog,
    scope: _Scope,
    topic: str,
    count: int,
    base_filter: Node | None,
    result: SearchResult,
) -> tuple[SearchResult, list[str]]:
    """Return *result* of a scope, or of a wider search if it is empty, and notes on both."""
    if _strong_hits(result):
        return result, [scope.note]
    wide = await catalog.search(topic, count, base_filter)
    if not result.hits:
        return wide, [f"The text names {scope.name}, but none of its standards matches."]
    better = _strong_hits(wide)
    return result, [scope.note, *([_elsewhere(scope.name, better)] if better else [])]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The part of the catalog that a text names.

    Attributes:
        expression: The filter for this part, or None for the whole catalog.
        name: The name of this part, such as ``grade 3``.
        note: The sentence that tells users about the filter, and how to turn it off.
        missing: Sentences on named standards that are not loaded.
    """

    expression: Node | None = None
    name: str = ""
    note: str = ""
    missing: tuple[str, ...] = ()


async def _scope(catalog: Catalog, named: NamedScope, base_filter: Node | None) -> _Scope:
    if not (named.levels or named.subject or named.publisher):
        return _Scope()
    facets, missing = await catalog.facets(), list[str]()
    limits, names, arguments = list[FilterExpression](), list[str](), list[str]()
    if named.publisher and "jurisdiction_title" not in fields(base_filter):
        family = family_of_place(named.publisher)
        if titles := jurisdictions_named(named.publisher, facets.jurisdictions):
            limits.append({"jurisdiction_title": {"$in": list(titles)}})
            names.append(family.name)
        else:
            missing.append(f"{family.name} are not loaded here; {family.source} loads them.")
    if named.levels:
        grades = spoken_levels(named.levels)
        if any(level in facets.education_levels for level in named.levels):
            limits.append(levels_filter(named.levels))
            names.append(f"grade {grades}")
            arguments.append("grade")
        else:
            missing.append(grade_not_loaded(grades))
    if named.subject:
        if subjects := match_subjects(named.subject, facets.subjects):
            limits.append(subjects_filter(subjects))
            names.append(named.subject)
            arguments.append("subject")
        else:
            missing.append(subject_not_loaded(named.subject))
    name = " and ".join(names)
    overrides = " and ".join(f"{argument} = 'any'" for argument in arguments)
    advice = f"; pass {overrides} to search all." if overrides else "."
    note = f"The text names {name}, so only its standards were searched{advice}"
    sentences = (sentence[0].upper() + sentence[1:] for sentence in missing)
    return _Scope(parse_filter(combine(*limits)), name, note, tuple(sentences))


async def _missing_by_topic(
    catalog: Catalog, result: SearchResult, min_share: float
) -> tuple[str, ...]:
    """Return the subject that the topic is probably about, as a sentence, if it is not loaded."""
    if not result.subjects or not result.hits or result.hits[0].score >= _CLEAR_MATCH:
        return ()
    facets, likely, absent_share, open_share = await catalog.facets(), "", 0.0, 1.0
    # Comparing a subject with hundreds of loaded ones takes milliseconds, so stop as soon as the
    # remaining, less probable subjects cannot change the result.
    for subject, share in sorted(result.subjects.items(), key=lambda item: -item[1]):
        if absent_share >= min_share or absent_share + open_share < min_share:
            break
        open_share -= share
        if not _is_loaded(subject, facets):
            likely, absent_share = likely or subject, absent_share + share
    if absent_share < min_share:
        return ()
    if likely == "none":
        return ("The text names no topic of a school subject; say what the students learn or do.",)
    if _is_preschool(likely):
        return (f"The text seems to be about preschool. {grade_not_loaded('Pre-K')}",)
    return (f"The text seems to be about {likely}. {subject_not_loaded(likely)}",)


def _is_loaded(subject: str, facets: Facets) -> bool:
    if _is_preschool(subject) and "Pre-K" in facets.education_levels:
        return True
    return bool(match_subjects(subject, facets.subjects))


def _is_preschool(subject: str) -> bool:
    return subject == "early childhood"


def _strong_hits(result: SearchResult) -> list[SearchHit]:
    return [hit for hit in result.hits if hit.score >= result.weak_below]


def _several_grades(hits: Sequence[SearchHit]) -> str:
    """Return the grades of hits, such as ``3-5``, or "" if all hits have the same grades."""
    levels = {hit.record.education_levels for hit in hits}
    return spoken_levels({level for each in levels for level in each}) if len(levels) > 1 else ""


def _reading_notes(reading: Reading) -> list[str]:
    if reading.language:
        return [f"Searched in English as: {reading.text}."]
    if not reading.foreign:
        return []
    advice = "the standards here are in English: search again with an English text."
    return [f"The text seems to be {reading.foreign}, and {advice}"]


def _each_once(hits: Iterable[SearchHit]) -> tuple[SearchHit, ...]:
    by_id = dict[str, SearchHit]()
    for hit in hits:
        by_id.setdefault(hit.record.id, hit)
    return tuple(by_id.values())


def _elsewhere(scope_name: str, hits: Sequence[SearchHit]) -> str:
    names = (
        f"{hit.record.statement_notation or hit.record.id} "
        f"(grade {spoken_levels(hit.record.education_levels)})"
        for hit in hits[:_MAX_BETTER]
    )
    return f"Standards outside of {scope_name} fit better: {', '.join(names)}."
