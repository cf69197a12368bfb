"""From a grade and a subject as people write them to a filter on what the catalog holds."""

from __future__ import annotations

from standards_mcp import Catalog, FilterExpression, InvalidInputError
from standards_mcp.catalog.grades import UnknownGradeError, parse_grades
from standards_mcp.catalog.subjects import match_subjects


async def scope_filter(
    catalog: Catalog, grade: str | None, subject: str | None, extra: FilterExpression | None
) -> FilterExpression | None:
    """Return one expression for the grade, the subject and *extra*, or None without any.

    Raises:
        InvalidInputError: A grade or a subject that does not exist; the message names those that
            do.
    """
    parts: list[FilterExpression] = []
    if grade and grade.strip():
        parts.append(_grade_filter(grade))
    if subject and subject.strip():
        parts.append(await _subject_filter(catalog, subject))
    if extra:
        parts.append(extra)
    if len(parts) > 1:
        return {"$and": parts}
    return parts[0] if parts else None


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
        raise InvalidInputError(f"Unknown subject {subject!r}. Subjects here: {known}.")
    if len(matched) == 1:
        return {"subject": {"$eq": matched[0]}}
    return {"subject": {"$in": list(matched)}}
