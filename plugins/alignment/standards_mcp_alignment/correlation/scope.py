"""The standards that an item is compared with: by jurisdiction, set, grade and subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from standards_mcp import InvalidInputError
from standards_mcp.filters import Node, combine, parse_filter
from standards_mcp_alignment.inputs import Item
from standards_mcp_catalog import Catalog, StandardSet
from standards_mcp_catalog.vocabulary.grades import UnknownGradeError, parse_grades
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    folded,
    jurisdiction_key,
    jurisdictions_meant,
    listed,
    quoted,
    titles_like,
)
from standards_mcp_catalog.vocabulary.subjects import match_subjects


@dataclass(frozen=True, slots=True)
class ItemScope:
    """The filter for one item.

    Attributes:
        is_graded: True if the filter limits the grade.
        jurisdictions: Number of jurisdictions whose standards pass the filter.
        notes: Values of the item that were ignored.
    """

    filter: Node | None
    is_graded: bool
    jurisdictions: int
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Scope:
    """Makes the filters of items. The grade and the subject of an item come before the options.

    Attributes:
        base: The filter of the jurisdiction and the set.
        sets: The sets that pass it.
    """

    base: Node | None
    sets: Sequence[StandardSet]
    grade: str
    subject: str
    _by_names: dict[tuple[str, str], ItemScope] = field(
        default_factory=dict[tuple[str, str], ItemScope]
    )

    def of(self, item: Item) -> ItemScope:
        """Return the filter for an item."""
        key = item.grade or self.grade, item.subject or self.subject
        if key not in self._by_names:
            self._by_names[key] = self._of(*key)
        return self._by_names[key]

    def _of(self, grade: str, subject: str) -> ItemScope:
        limits: list[dict[str, Any]] = []
        notes: list[str] = []
        sets, is_graded = self.sets, False
        if grade:
            try:
                limits.append({"education_levels": {"$in": list(parse_grades(grade))}})
                is_graded = True
            except UnknownGradeError:
                notes.append(f"the grade {quoted(grade)} is not known and was ignored")
        if subject:
            matched = match_subjects(subject, {item.subject for item in sets})
            if matched:
                sets = [item for item in sets if item.subject in matched]
                limits.append({"subject": {"$in": list(matched)}})
            else:
                notes.append(f"no standards of the subject {quoted(subject)} are loaded; all count")
        places = {jurisdiction_key(item.jurisdiction_title) for item in sets}
        expression = parse_filter(combine(self.base, *limits))
        return ItemScope(expression, is_graded, len(places), tuple(notes))


async def open_scope(
    catalog: Catalog, *, grade: str, subject: str, jurisdiction: str, standard_set: str
) -> Scope:
    """Return the scope of options, of which an empty one does not limit anything.

    Raises:
        InvalidInputError: An option names nothing in the catalog; the message has existing values.
        CatalogError: The catalog cannot be read.
    """
    facets = await catalog.facets()
    sets: Sequence[StandardSet] = (await catalog.sets()).sets
    limits: list[dict[str, Any]] = []
    if grade:
        try:
            parse_grades(grade)
        except UnknownGradeError as error:
            raise InvalidInputError(str(error)) from None
    if subject and not match_subjects(subject, facets.subjects):
        raise InvalidInputError(
            f"No standards of {quoted(subject)} are loaded. Subjects here: "
            f"{listed(sorted(facets.subjects))}."
        )
    if jurisdiction:
        titles = _jurisdictions(jurisdiction, {item.jurisdiction_title for item in sets})
        sets = [item for item in sets if item.jurisdiction_title in titles]
        limits.append({"jurisdiction_title": {"$in": sorted(titles)}})
    if standard_set:
        sets = _named_sets(standard_set, sets)
        ids = [item.id for item in sets]
        either = [{"standard_set_id": {"$in": ids}}, {"also_in_set_ids": {"$in": ids}}]
        limits.append({"$or": either})
    return Scope(
        base=parse_filter(combine(*limits)),
        sets=sets,
        grade=grade,
        subject=subject,
    )


def _jurisdictions(text: str, titles: set[str]) -> set[str]:
    try:
        return set(jurisdictions_meant(text, titles))
    except JurisdictionNameError as error:
        raise InvalidInputError(str(error)) from None


def _named_sets(text: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    wanted = folded(text)
    chosen = [item for item in sets if wanted in {folded(item.id), folded(item.title)}]
    if not chosen:
        titles = sorted({item.title for item in sets})
        close = titles_like(text, titles)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise InvalidInputError(
            f"No standard set here is {quoted(text)}.{hint} `standards-mcp data sets` lists them."
        )
    return chosen
