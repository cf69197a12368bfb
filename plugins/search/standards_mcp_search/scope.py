"""Make a filter of a grade and a subject, and suggest wider searches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp.filters import Node, Or, combine, matches, parse_filter
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.vocabulary.grades import UnknownGradeError, grade_order, parse_grades
from standards_mcp_catalog.vocabulary.subjects import is_subject, match_subjects, nearest_subjects

from .arguments import is_limiting

MOST_HITS = 50
_LONGEST_QUOTE = 60


async def scope_filter(
    catalog: Catalog, grade: str | None, subject: str | None, extra: FilterExpression | None
) -> Node | None:
    """Return one filter for the grade, the subject and *extra*, or None if none limits the search.

    The filter is parsed only once, for all searches of a call.

    Raises:
        InvalidInputError: The grade does not exist, or no loaded standard has the subject; the
            message names existing ones.
    """
    expression = combine(
        _grade_filter(grade) if is_limiting(grade) else None,
        await _subject_filter(catalog, subject) if is_limiting(subject) else None,
        extra,
    )
    return parse_filter(expression)


async def how_to_widen(
    catalog: Catalog,
    text: str,
    grade: str | None,
    subject: str | None,
    extra: FilterExpression | None,
) -> str:
    """Suggest a wider search after a search for *text* without a result.

    This takes at most one search, and only with a grade or a subject. *extra* stays in force.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    scopes = {
        "grade": await scope_filter(catalog, grade, None, None),
        "subject": await scope_filter(catalog, None, subject, None),
    }
    limits = {name: limit for name, limit in scopes.items() if limit is not None}
    advice = "Describe the activity in other or more general words."
    if not limits:
        return advice
    # One search finds the matches without the one or the other limit; the loop separates them.
    either = Or(tuple(limits.values())) if len(limits) > 1 else None
    hits = (await catalog.search(text, MOST_HITS, combine(either, extra))).hits
    records = [record for hit in hits for record in (hit.record, *hit.also_in)]
    suggestions = list[str]()
    for name in limits:
        rest = parse_filter(combine(*(limit for other, limit in limits.items() if other != name)))
        fitting = [record for record in records if matches(rest, record.to_dict())]
        if values := _values(name, fitting):
            suggestions.append(f"Without the {name} there are matches in: {', '.join(values)}.")
    return " ".join((f"Search again without {' or '.join(limits)}.", *(suggestions or [advice])))


def _values(name: str, records: Iterable[StandardRecord]) -> list[str]:
    if name == "subject":
        return sorted({record.subject for record in records})
    levels = {level for record in records for level in record.education_levels}
    return sorted(levels, key=grade_order)


def _grade_filter(grade: str) -> FilterExpression:
    try:
        levels = parse_grades(grade)
    except UnknownGradeError as exc:
        raise InvalidInputError(str(exc)) from None
    return levels_filter(levels)


def levels_filter(levels: Collection[str]) -> FilterExpression:
    """Return the filter for standards of any of these grade levels."""
    return {"education_levels": {"$in": list(levels)}}


def subjects_filter(subjects: Sequence[str]) -> FilterExpression:
    """Return the filter for standards of any of these subjects, as the catalog names them."""
    if len(subjects) == 1:
        return {"subject": {"$eq": subjects[0]}}
    return {"subject": {"$in": list(subjects)}}


def subject_not_loaded(subject: str) -> str:
    """Return the message for a school subject without loaded standards."""
    command = _import_advice(f" --subject '{subject}'")
    return f"No standards of {subject} are loaded here; {command}"


def grade_not_loaded(grades: str) -> str:
    """Return the message for grades without loaded standards, as `spoken_levels` writes them."""
    name = grades if grades == "Pre-K" else f"grade {grades}"
    return f"No standards for {name} are loaded here; {_import_advice()}"


def _import_advice(option: str = "") -> str:
    command = f"standards-mcp data import --from-api csp --jurisdiction STATE{option}"
    return f"the operator of the server can load those of a state with `{command}`."


async def _subject_filter(catalog: Catalog, subject: str) -> FilterExpression:
    available = (await catalog.facets()).subjects
    matched = match_subjects(subject, available)
    if not matched:
        known = ", ".join(sorted(available)) or "none"
        if is_subject(subject):
            raise InvalidInputError(
                f"{subject_not_loaded(subject.strip())} Subjects here: {known}."
            )
        close = nearest_subjects(subject, available)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        quoted = repr(subject[:_LONGEST_QUOTE])
        raise InvalidInputError(f"Unknown subject {quoted}.{hint} Subjects here: {known}.")
    return subjects_filter(matched)
