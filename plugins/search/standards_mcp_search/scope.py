"""From a grade and a subject as people write them to a filter on what the catalog holds."""

from __future__ import annotations

from standards_mcp import Catalog, FilterExpression, InvalidInputError
from standards_mcp.catalog.filters import combine
from standards_mcp.catalog.grades import UnknownGradeError, parse_grades
from standards_mcp.catalog.subjects import match_subjects, nearest_subjects


async def scope_filter(
    catalog: Catalog, grade: str | None, subject: str | None, extra: FilterExpression | None
) -> FilterExpression | None:
    """Return one expression for the grade, the subject and *extra*, or None without any.

    Raises:
        InvalidInputError: A grade or a subject that does not exist; the message names those that
            do.
    """
    return combine(
        _grade_filter(grade) if grade and grade.strip() else None,
        await _subject_filter(catalog, subject) if subject and subject.strip() else None,
        extra,
    )


def _grade_filter(grade: str) -> FilterExpression:
    try:
        levels = parse_grades(grade)
    except UnknownGradeError as exc:
        raise InvalidInputError(str(exc)) from None
    return {"education_levels": {"$in": list(levels)}}


async def _subject_filter(catalog: Catalog, subject: str) -> FilterExpression:
    available = (await catalog.facets()).subjects
    matched = match_subjects(subject, available)
    if not matched:
        known = ", ".join(sorted(available)) or "none; load standards first"
        close = nearest_subjects(subject, available)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise InvalidInputError(f"Unknown subject {subject!r}.{hint} Subjects here: {known}.")
    if len(matched) == 1:
        return {"subject": {"$eq": matched[0]}}
    return {"subject": {"$in": list(matched)}}
