"""The standards of one grade and subject, in their domains and clusters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from standards_mcp import FilterExpression, InvalidInputError, NotFoundError
from standards_mcp.filters import combine
from standards_mcp_alignment.loaded import (
    in_sets,
    jurisdiction_titles,
    one_grade,
    one_set,
    subjects_named,
    without_paraphrases,
)
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.relations import retirements
from standards_mcp_catalog.sets import own_set_title
from standards_mcp_catalog.vocabulary.grades import spoken_levels
from standards_mcp_catalog.vocabulary.notation import canonical_key

_MOST_STANDARDS: Final = 2_000
_MOST_LEVELS: Final = 7
"""Standards for more grades, such as the mathematical practices of K-12, are of no grade alone."""
# RL.3.1 is of the strand RL: the numbers of grade and standard, and the letter of a part, are cut.
_NUMBERS: Final = re.compile(r"(?:\.(?:[\d-]+|K))+(?:\.[A-Z])?$")


@dataclass(frozen=True, slots=True)
class Heading:
    """A domain or a cluster; without an id if only the codes of its standards show it."""

    id: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The standards of one grade, and the filter that finds them.

    Attributes:
        standards: The smallest standards, lettered parts included, in the order of their tree.
        domains: The domain of each standard, by its id.
        clusters: The cluster of each standard that has one, by its id.
        notes: Sentences on standards that were left out.
    """

    name: str
    jurisdiction: str
    subjects: tuple[str, ...]
    levels: tuple[str, ...]
    filter: FilterExpression
    standards: Sequence[StandardRecord]
    domains: Mapping[str, Heading]
    clusters: Mapping[str, Heading]
    notes: tuple[str, ...]


async def open_scope(
    catalog: Catalog, grade: str, subject: str, jurisdiction: str, set_name: str
) -> Scope:
    """Return the standards of a grade and a subject, of one jurisdiction or one set.

    Raises:
        InvalidInputError: A name is unknown or ambiguous; the message lists the choices.
        NotFoundError: No loaded standard is of this grade and subject.
        CatalogError: The catalog cannot be read.
    """
    levels, subjects = one_grade(grade), await subjects_named(catalog, subject)
    place = await _place_filter(catalog, jurisdiction, set_name)
    common = combine(
        {"education_levels": {"$in": list(levels)}}, {"subject": {"$in": list(subjects)}}, place
    )
    expression = combine(common, {"is_leaf": True}) or {}
    found = without_paraphrases(await catalog.select(expression, _MOST_STANDARDS))
    which = f"grade {spoken_levels(levels)} in {' and '.join(subjects)}"
    if not found:
        raise await _nothing_loaded(catalog, which, subjects, place)
    titles = sorted({record.jurisdiction_title for record in found})
    if len(titles) > 1:
        raise InvalidInputError(
            f"Standards of {which} are loaded for {len(titles)} jurisdictions. Pass jurisdiction: "
            f"one of {', '.join(titles)}."
        )
    standards, notes = await _counted(catalog, found)
    above = {each.id: each for each in await catalog.fetch(_ancestor_ids(standards))}
    paths = {record.id: _headings(record, above) for record in standards}
    paths = _without_common_top(paths)
    ordered = sorted(standards, key=lambda record: _order(record, paths[record.id]))
    return Scope(
        name=f"{titles[0]}, {which}",
        jurisdiction=titles[0],
        subjects=subjects,
        levels=levels,
        filter=expression,
        standards=ordered,
        domains={id_: path[0] for id_, path in paths.items()},
        clusters={id_: path[1] for id_, path in paths.items() if len(path) > 1},
        notes=(*notes, *_edition_note(standards)),
    )


async def _place_filter(
    catalog: Catalog, jurisdiction: str, set_name: str
) -> FilterExpression | None:
    if not jurisdiction.strip() and not set_name.strip():
        return None
    sets = (await catalog.sets()).sets
    titles = jurisdiction_titles(jurisdiction, sets) if jurisdiction.strip() else []
    place: FilterExpression | None = {"jurisdiction_title": {"$in": titles}} if titles else None
    if not set_name.strip():
        return place
    own = [each for each in sets if not titles or each.jurisdiction_title in titles]
    return combine(place, in_sets([one_set(set_name, own).id]))


async def _nothing_loaded(
    catalog: Catalog, which: str, subjects: Sequence[str], place: FilterExpression | None
) -> NotFoundError:
    others = await catalog.select(
        combine({"subject": {"$in": list(subjects)}}, place) or {}, _MOST_STANDARDS
    )
    grades = spoken_levels({level for record in others for level in record.education_levels})
    hint = f" {' and '.join(subjects)} is loaded there for grades {grades}." if grades else ""
    return NotFoundError(
        f"No standards of {which} are loaded.{hint} The operator can load more with "
        "`standards-mcp data import --from-api csp --jurisdiction STATE`."
    )


async def _counted(
    catalog: Catalog, found: Sequence[StandardRecord]
) -> tuple[list[StandardRecord], list[str]]:
    """Return the standards that count, and notes on the others."""
    notes = list[str]()
    retired = await retirements(catalog, found)
    current = [record for record in found if record.id not in retired] or list(found)
    if count := len(found) - len(current):
        notes.append(f"{count} retired standards do not count.")
    counted = [each for each in current if len(each.education_levels) <= _MOST_LEVELS] or current
    if count := len(current) - len(counted):
        notes.append(f"{count} standards for more than {_MOST_LEVELS} grades do not count.")
    return counted, notes


def _edition_note(standards: Iterable[StandardRecord]) -> list[str]:
    documents = {record.document_id for record in standards if record.document_id}
    note = (
        f"The standards come from {len(documents)} documents. If these are editions, pass set for "
        "one of them."
    )
    return [note] if len(documents) > 1 else []


def _ancestor_ids(standards: Iterable[StandardRecord]) -> list[str]:
    return list(dict.fromkeys(id_ for record in standards for id_ in record.ancestor_ids))


def _headings(record: StandardRecord, above: Mapping[str, StandardRecord]) -> list[Heading]:
    """Return the headings of a standard from the top, at least one."""
    path = [above[id_] for id_ in record.ancestor_ids if id_ in above]
    headings = [
        Heading(each.id, each.statement_notation or "", each.description)
        for each in path
        if not _is_standard(each)
    ]
    if headings:
        return headings
    # Without headings, as in the Common Core's ELA, codes show the strand.
    strand = _NUMBERS.sub("", canonical_key(record.statement_notation or ""))
    return [Heading("", strand, own_set_title(record))]


def _is_standard(record: StandardRecord) -> bool:
    """Return True for a standard with lettered parts, in contrast to a heading."""
    return (record.statement_label or "").casefold() in ("standard", "expectation", "benchmark")


def _without_common_top(paths: Mapping[str, list[Heading]]) -> dict[str, list[Heading]]:
    """Return *paths* without headings above all standards, such as ``Grade 3``."""
    cut = dict(paths)
    while len({path[0].id for path in cut.values()}) == 1 and all(len(p) > 1 for p in cut.values()):
        cut = {id_: path[1:] for id_, path in cut.items()}
    return cut


def _order(record: StandardRecord, path: Sequence[Heading]) -> tuple[object, ...]:
    codes = (*(heading.code for heading in path), record.statement_notation or "")
    # Numbers in codes count as numbers: 3.NF.10 follows 3.NF.9.
    return tuple(
        tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)
        for parts in (re.findall(r"\d+|\D+", code) for code in codes)
    )
