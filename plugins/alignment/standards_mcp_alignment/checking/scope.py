"""Read the grade, the subject and the jurisdiction that the codes of a lesson must fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp.filters import Node, combine
from standards_mcp_catalog import Catalog, Facets
from standards_mcp_catalog.vocabulary.families import Family, family_of_place
from standards_mcp_catalog.vocabulary.grades import UnknownGradeError, parse_grades, spoken_levels
from standards_mcp_catalog.vocabulary.named import read_named
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    jurisdictions_meant,
    jurisdictions_named,
    place_named,
)
from standards_mcp_catalog.vocabulary.subjects import is_subject, match_subjects, nearest_subjects

_ANY: Final = ("", "any", "all", "*")
_LONGEST_QUOTE: Final = 60
_GRADE_LINE: Final = re.compile(r"[\W_]{0,20}grades?\b[^:]{0,20}:", re.IGNORECASE)
_LONGEST_HEAD: Final = 3_000
"""A lesson states its grade at its beginning; later it may name other grades."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The grade, the subject and the jurisdiction that codes must fit.

    Attributes:
        levels: The grade levels; empty for all.
        grade_source: ``text`` if the lesson states its grade and the caller gave none.
        subject: The subject as the caller wrote it, or "".
        subjects: Names of the subject in the catalog; empty if it is not loaded.
        jurisdiction: The jurisdiction as the caller wrote it, or "".
        jurisdictions: Its titles in the catalog; empty if it is not loaded.
        loaded: The titles of all jurisdictions in the catalog.
    """

    levels: tuple[str, ...]
    grade_source: Literal["argument", "text", ""]
    subject: str
    subjects: tuple[str, ...]
    jurisdiction: str
    jurisdictions: tuple[str, ...]
    loaded: tuple[str, ...]

    @property
    def grades(self) -> str:
        """The grades as people write them, such as ``K-2``."""
        return spoken_levels(self.levels)

    @property
    def missing_family(self) -> Family | None:
        """The standards of the jurisdiction, if they are not loaded."""
        place = place_named(self.jurisdiction) if self.jurisdiction else None
        return family_of_place(place) if place and not self.jurisdictions else None

    def filter(self) -> FilterExpression | Node | None:
        """Return the filter of searches in this scope."""
        limits = {
            "education_levels": self.levels,
            "subject": self.subjects,
            "jurisdiction_title": self.jurisdictions,
        }
        return combine(
            *({name: {"$in": list(values)}} for name, values in limits.items() if values)
        )

    def is_loaded(self, family: Family) -> bool:
        """Return True if the catalog has standards of a family."""
        return any(jurisdictions_named(place, self.loaded) for place in family.places)


async def read_scope(
    catalog: Catalog, lesson: str, grade: str | None, subject: str | None, jurisdiction: str | None
) -> Scope:
    """Return the scope of the arguments, and of the grade that the lesson states.

    Raises:
        InvalidInputError: An argument is not a grade, a subject or a jurisdiction.
        CatalogError: The catalog cannot be read.
    """
    facets = await catalog.facets()
    loaded = tuple(facets.jurisdictions)
    wanted, subject, jurisdiction = (_limiting(each) for each in (grade, subject, jurisdiction))
    levels: tuple[str, ...] = ()
    source: Literal["argument", "text", ""] = ""
    if wanted:
        try:
            levels, source = parse_grades(wanted), "argument"
        except UnknownGradeError as error:
            raise InvalidInputError(str(error)) from None
    elif grade is None or not grade.strip():
        levels = _stated_levels(lesson[:_LONGEST_HEAD])
        source = "text" if levels else ""
    return Scope(
        levels,
        source,
        subject,
        _subjects(subject, facets),
        jurisdiction,
        _jurisdictions(jurisdiction, loaded),
        loaded,
    )


def _stated_levels(lesson: str) -> tuple[str, ...]:
    """Return the grade in a line such as "Grade: 4", or else in the first line that names one."""
    lines = lesson.splitlines()
    labelled = [line for line in lines if _GRADE_LINE.match(line)]
    named = (read_named(line, reads_subject=False).levels for line in (*labelled, *lines))
    return next(filter(None, named), ())


def _limiting(value: str | None) -> str:
    text = (value or "").strip()
    return "" if text.casefold() in _ANY else text


def _subjects(subject: str, facets: Facets) -> tuple[str, ...]:
    matched = match_subjects(subject, facets.subjects) if subject else ()
    if subject and not matched and not is_subject(subject):
        close = nearest_subjects(subject, facets.subjects)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        known = ", ".join(sorted(facets.subjects)) or "none"
        quoted = repr(subject[:_LONGEST_QUOTE])
        raise InvalidInputError(f"Unknown subject {quoted}.{hint} Subjects here: {known}.")
    return matched


def _jurisdictions(name: str, loaded: tuple[str, ...]) -> tuple[str, ...]:
    if not name or (place_named(name) and not jurisdictions_named(name, loaded)):
        return ()
    try:
        return tuple(jurisdictions_meant(name, loaded))
    except JurisdictionNameError as error:
        raise InvalidInputError(str(error)) from None
