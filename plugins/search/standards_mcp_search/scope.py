"""From a grade and a subject as people write them to a filter on what the catalog holds."""

from __future__ import annotations

from standards_mcp import Catalog, FilterExpression, InvalidInputError
from standards_mcp.catalog.filters import combine
from standards_mcp.catalog.grades import UnknownGradeError, grade_order, parse_grades
from standards_mcp.catalog.subjects import match_subjects, nearest_subjects

MOST_HITS = 50
_LONGEST_QUOTE = 60


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


async def how_to_widen(catalog: Catalog, text: str, grade: str | None, subject: str | None) -> str:
    """Return what to try after a search for *text* found nothing, and what exists for it.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    given = {"grade": grade, "subject": subject}
    names = [name for name, value in given.items() if value and value.strip()]
    advice = "Describe the activity in other or more general words."
    if not names:
        return advice
    found = list[str]()
    for name in names:
        others = given | {name: None}
        expression = await scope_filter(catalog, others["grade"], others["subject"], None)
        hits = (await catalog.search(text, MOST_HITS, expression)).hits
        if name == "grade":
            levels = {level for hit in hits for level in hit.record.education_levels}
            known = sorted(levels, key=grade_order)
        else:
            known = sorted({hit.record.subject for hit in hits})
        if known:
            found.append(f"Without the {name} there are matches in: {', '.join(known)}.")
    return " ".join((f"Search again without {' or '.join(names)}.", *(found or [advice])))


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
        quoted = repr(subject[:_LONGEST_QUOTE])
        raise InvalidInputError(f"Unknown subject {quoted}.{hint} Subjects here: {known}.")
    if len(matched) == 1:
        return {"subject": {"$eq": matched[0]}}
    return {"subject": {"$in": list(matched)}}
