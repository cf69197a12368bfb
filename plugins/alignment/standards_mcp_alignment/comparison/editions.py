"""Find the standards that a text names: one set, one edition of a jurisdiction, or all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from standards_mcp import FilterExpression, InvalidInputError, NotFoundError
from standards_mcp.filters import combine
from standards_mcp_alignment.loaded import (
    in_sets,
    listed,
    place_and_rest,
    set_names,
    sets_named,
    subjects_named,
    unknown_set,
    without_paraphrases,
)
from standards_mcp_catalog import Catalog, StandardRecord, StandardSet
from standards_mcp_catalog.vocabulary.names import folded, jurisdiction_key, quoted
from standards_mcp_catalog.vocabulary.subjects import match_subjects

_MOST_STANDARDS: Final = 6_000
_LONGEST_NAME: Final = 512


@dataclass(frozen=True, slots=True)
class Edition:
    """The standards of one side of a comparison."""

    name: str
    records: Sequence[StandardRecord]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the records."""
        return frozenset(record.id for record in self.records)


async def open_editions(
    catalog: Catalog, left: str, right: str, subject: str
) -> tuple[Edition, Edition, list[str]]:
    """Return both sides, limited to the subjects that both have, and notes.

    Raises:
        InvalidInputError: A name is ambiguous, both name the same standards, or they have no
            subject in common.
        NotFoundError: A name is unknown.
        CatalogError: The catalog cannot be read.
    """
    subjects = await subjects_named(catalog, subject) if subject.strip() else ()
    one = await _edition(catalog, left, "left", subjects)
    other = await _edition(catalog, right, "right", subjects)
    if one.ids == other.ids:
        raise InvalidInputError(
            f"left and right are the same standards: {one.name}. {await _editions_of(catalog, one)}"
        )
    return _with_common_subjects(one, other)


def _with_common_subjects(one: Edition, other: Edition) -> tuple[Edition, Edition, list[str]]:
    kept, notes = list[Edition](), list[str]()
    for edition, against in ((one, other), (other, one)):
        available = {record.subject for record in against.records}
        common = {
            subject
            for subject in {record.subject for record in edition.records}
            if match_subjects(subject, available)
            or any(match_subjects(each, [subject]) for each in available)
        }
        records = [record for record in edition.records if record.subject in common]
        if without := sorted({record.subject for record in edition.records} - common):
            notes.append(f"Not compared, because only {edition.name} has it: {listed(without)}.")
        kept.append(Edition(edition.name, records))
    if not kept[0].records or not kept[1].records:
        subjects = [_subjects(each) for each in (one, other)]
        raise InvalidInputError(
            f"{one.name} is of {subjects[0]} and {other.name} of {subjects[1]}. Compare two "
            "sets of one subject."
        )
    return kept[0], kept[1], notes


def _subjects(edition: Edition) -> str:
    return listed(sorted({record.subject for record in edition.records}))


async def _edition(catalog: Catalog, text: str, side: str, subjects: Sequence[str]) -> Edition:
    text = text.strip()
    if not text or len(text) > _LONGEST_NAME:
        raise InvalidInputError(
            f"{side} {'is empty' if not text else 'is too long'}. Name a standard set by its id or "
            "title, or a jurisdiction, with the year of an edition if it has several: 'Ohio 2017'."
        )
    limit = {"subject": {"$in": list(subjects)}} if subjects else None
    sets = [
        each for each in (await catalog.sets()).sets if not subjects or each.subject in subjects
    ]
    if named := sets_named(text, sets):
        if len({each.id for each in named}) > 1:
            raise InvalidInputError(
                f"{side}: {len(named)} sets are called {quoted(text)}. Pass subject, or the id of "
                f"one: {set_names(named)}."
            )
        records = await _select(catalog, combine(in_sets([named[0].id]), limit) or {}, side)
        return Edition(named[0].description, records)
    titles, wanted = place_and_rest(text, {each.jurisdiction_title for each in sets})
    if len({jurisdiction_key(title) for title in titles}) > 1:
        raise InvalidInputError(f"{side}: {quoted(text)} may be {listed(sorted(titles))}.")
    if titles:
        place: FilterExpression = {"jurisdiction_title": {"$in": titles}}
        records = await _select(catalog, combine(place, limit) or {}, side)
        return _edition_named(titles[0], wanted, records, side)
    records = await _select(catalog, combine({"document_id": text}, limit) or {}, side)
    if not records:
        raise unknown_set(text, sets)
    return Edition(_document(records[0]), records)


async def _select(
    catalog: Catalog, expression: FilterExpression, side: str
) -> list[StandardRecord]:
    records = await catalog.select(expression, _MOST_STANDARDS + 1)
    if len(records) > _MOST_STANDARDS:
        raise InvalidInputError(
            f"{side} has more than {_MOST_STANDARDS:,} standards. Pass subject, or name one set."
        )
    return without_paraphrases(records)


def _edition_named(
    title: str, wanted: str, records: Sequence[StandardRecord], side: str
) -> Edition:
    """Return the edition of a jurisdiction whose document has all words of *wanted*."""
    if not wanted:
        return Edition(title, records)
    words = set(folded(wanted).split())
    chosen = [record for record in records if words <= set(folded(_document(record)).split())]
    if not chosen:
        raise NotFoundError(
            f"{side}: {title} has no edition {quoted(wanted)} here. There are: "
            f"{_documents(records)}."
        )
    return Edition(f"{title}, {listed(sorted({_document(each) for each in chosen}))}", chosen)


def _documents(records: Iterable[StandardRecord]) -> str:
    return listed(sorted({_document(record) for record in records}))


def _document(record: StandardRecord) -> str:
    """Return title, year and id of the document that a standard comes from."""
    title = str((record.model_extra or {}).get("document_title") or record.subject)
    parts = (title, record.document_valid, record.document_id and f"({record.document_id})")
    return " ".join(part for part in parts if part)


async def _editions_of(catalog: Catalog, edition: Edition) -> str:
    """Return advice for two names of the same standards."""
    titles = {record.jurisdiction_title for record in edition.records}
    sets: list[StandardSet] = [
        each for each in (await catalog.sets()).sets if each.jurisdiction_title in titles
    ]
    return (
        f"Name two editions of it, such as 'Ohio 2010' and 'Ohio 2017', or two sets. Documents: "
        f"{_documents(edition.records)}. Sets: {set_names(sets)}."
    )
