"""Standard sets, and records that belong to several of them.

Sources repeat a standard in the set of each grade it belongs to, under the same id: a high-school
standard is in four sets. A store holds one record for an id, with its place in one set, the
education levels of all and a title for all, and lists the other sets in three fields of equal
length: ``also_in_set_ids``, ``also_in_set_titles`` and ``also_in_set_levels`` (codes joined by
commas). ``set_title`` and ``set_levels`` describe the record's own set.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self, TypeAlias, cast

from .records import StandardRecord
from .vocabulary.grades import GRADES, grade_order, normalize_levels, parse_grades, spoken_levels
from .vocabulary.names import are_one_jurisdiction
from .vocabulary.notation import canonical_key

# Flat lists of text, because every store can hold them.
_IDS: Final = "also_in_set_ids"
_TITLES: Final = "also_in_set_titles"
_LEVELS: Final = "also_in_set_levels"
_OWN_LEVELS: Final = "set_levels"
_OWN_TITLE: Final = "set_title"
_GRADE_TITLE: Final = re.compile(r"grade \d{1,2}|(pre-?)?kindergarten", re.IGNORECASE)
_TITLES_SHOWN: Final = 3

GivenNames: TypeAlias = Mapping[str, Mapping[str, str]]
"""Names that users gave to sets, by id: ``title``, and ``jurisdiction_id`` with
``jurisdiction_title``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardSet:
    """A standard set as a store holds it.

    Attributes:
        records: How many records have it as their own set.
    """

    id: str
    title: str
    subject: str
    jurisdiction_id: str
    jurisdiction_title: str
    license: str | None = None
    source_url: str | None = None
    records: int = 0

    @classmethod
    def of(cls, record: StandardRecord) -> Self:
        """Return the set that *record* has as its own, without a count."""
        return cls(
            id=record.standard_set_id, title=own_set_title(record), subject=record.subject,
            jurisdiction_id=record.jurisdiction_id, jurisdiction_title=record.jurisdiction_title,
            license=record.license, source_url=record.source_url,
        )  # fmt: skip

    @property
    def description(self) -> str:
        """The title with jurisdiction and subject, for lists."""
        return f"{self.title} ({self.jurisdiction_title}, {self.subject})"

    def order(self) -> tuple[str, ...]:
        """Return the sort key."""
        return self.jurisdiction_title, self.subject, self.title, self.id

    def to_dict(self) -> dict[str, Any]:
        """Return the set as JSON-ready data."""
        return asdict(self)


class Membership(NamedTuple):
    """One of the sets that a record is in, and the education levels it has there."""

    set_id: str
    title: str
    levels: tuple[str, ...]


def own_set_title(record: StandardRecord) -> str:
    """Return the title of the set whose place *record* has, which may be in others too."""
    return str((record.model_extra or {}).get(_OWN_TITLE, record.standard_set_title))


def memberships(record: StandardRecord) -> dict[str, Membership]:
    """Return the sets that *record* is in by their ids, its own first."""
    extra = record.model_extra or {}
    ids, titles, levels = (_texts(extra.get(name)) for name in (_IDS, _TITLES, _LEVELS))
    own_levels = _split(str(extra[_OWN_LEVELS])) if _OWN_LEVELS in extra else None
    own = Membership(
        record.standard_set_id,
        own_set_title(record),
        record.education_levels if own_levels is None else own_levels,
    )
    others = (
        Membership(id_, title, _split(codes))
        for id_, title, codes in zip(ids, titles, levels, strict=False)
    )
    return {own.set_id: own} | {each.set_id: each for each in others if each.set_id != own.set_id}


# Of 7,202 rows for the Common Core and the NGSS, 3,653 are repetitions. If the last set counted, a
# high-school standard would be in grade 12 only.
def merged(records: Sequence[StandardRecord]) -> StandardRecord:
    """Return one record for *records*, which all have the same id.

    It gets the place of the record with the lowest grade, and among equal grades with the first set
    id, so that the order of *records* does not matter.
    """
    base, *others = sorted(records, key=_grade_and_set)
    sets: dict[str, Membership] = {}
    for record in (base, *others):
        sets = memberships(record) | sets
    children = dict.fromkeys(id_ for record in (base, *others) for id_ in record.child_ids)
    return _with_sets(base, sets, tuple(children))


def merged_with_stored(
    record: StandardRecord, stored: StandardRecord, replaced: Collection[str] = ()
) -> StandardRecord:
    """Return *record*, merged with the other sets of its stored version.

    An official text replaces a paraphrase as a whole, and a paraphrase never replaces it.

    Args:
        replaced: Sets that were read completely. If *record* does not name one, it leaves it.
    """
    if stored.text_status != record.text_status:
        if _is_paraphrase(stored):
            return record
        if _is_paraphrase(record):
            return stored
    sets = memberships(record)
    others = set(memberships(stored)) - set(sets) - set(replaced)
    kept = without_sets(stored, set(memberships(stored)) - others)
    if kept is None:
        return record
    # A stored record loses its place if the place belongs to a set that was read now.
    if stored.standard_set_id not in sets and kept.description == record.description:
        return merged((record, kept))
    children = tuple(dict.fromkeys((*record.child_ids, *kept.child_ids)))
    return _with_sets(record, sets | memberships(kept), children)


def without_replaced(records: Sequence[StandardRecord]) -> list[StandardRecord]:
    """Return *records* without paraphrases, if the official text of the standard is among them.

    Two records are of one standard if their codes and jurisdictions are the same.
    """
    official = [record for record in records if not _is_paraphrase(record)]
    return [
        record
        for record in records
        if not (
            _is_paraphrase(record) and any(_are_one_standard(record, other) for other in official)
        )
    ]


def _is_paraphrase(record: StandardRecord) -> bool:
    return record.text_status == "paraphrase"


def _are_one_standard(record: StandardRecord, other: StandardRecord) -> bool:
    codes = {canonical_key(each.statement_notation or "") for each in (record, other)}
    return len(codes) == 1 and are_one_jurisdiction(
        record.jurisdiction_title, other.jurisdiction_title
    )


def without_sets(record: StandardRecord, sets: Collection[str]) -> StandardRecord | None:
    """Return *record* without its place in these sets, or None if it is in no other set."""
    left = {id_: each for id_, each in memberships(record).items() if id_ not in sets}
    if not left or len(left) == len(memberships(record)):
        return record if left else None
    return _with_sets(record, left, record.child_ids)


def renamed(record: StandardRecord, given: GivenNames) -> StandardRecord:
    """Return *record* with the names that users gave to its sets, or unchanged."""
    names = given.get(record.standard_set_id, {})
    if title := names.get("jurisdiction_title"):
        jurisdiction = {"jurisdiction_id": names["jurisdiction_id"], "jurisdiction_title": title}
        record = record.model_copy(update=jurisdiction)
    sets = memberships(record)
    retitled = {
        id_: each._replace(title=given.get(id_, {}).get("title", each.title))
        for id_, each in sets.items()
    }
    return record if retitled == sets else _with_sets(record, retitled, record.child_ids)


def with_names(given: GivenNames, names: GivenNames) -> GivenNames:
    """Return the names in *given*, updated with *names*."""
    return {**given, **{id_: {**given.get(id_, {}), **new} for id_, new in names.items()}}


def remove_from_sets(
    records: Iterable[StandardRecord], sets: Collection[str]
) -> tuple[list[StandardRecord], list[str]]:
    """Return *records* without these sets, and the ids of records that have no other set."""
    leaving: list[StandardRecord] = []
    deleted: list[str] = []
    for record in records:
        if left := without_sets(record, sets):
            leaving.append(left)
        else:
            deleted.append(record.id)
    return leaving, deleted


def _with_sets(
    base: StandardRecord, sets: Mapping[str, Membership], children: tuple[str, ...]
) -> StandardRecord:
    first = base.standard_set_id if base.standard_set_id in sets else min(sets)
    own, others = sets[first], [sets[id_] for id_ in sorted(sets) if id_ != first]
    data = base.to_dict()
    for name in (_IDS, _TITLES, _LEVELS, _OWN_LEVELS, _OWN_TITLE):
        data.pop(name, None)
    data |= {
        "standard_set_id": own.set_id,
        "standard_set_title": _title_of_all([own.title, *(each.title for each in others)]),
        "education_levels": normalize_levels(level for each in sets.values() for level in each[2]),
        "child_ids": children,
        "is_leaf": not children,
    }
    return StandardRecord.from_dict(data | _also_in(own, others))


def _also_in(own: Membership, others: Sequence[Membership]) -> dict[str, Any]:
    if not others:
        return {}
    return {
        _IDS: [each.set_id for each in others],
        _TITLES: [each.title for each in others],
        _LEVELS: [",".join(each.levels) for each in others],
        _OWN_LEVELS: ",".join(own.levels),
        _OWN_TITLE: own.title,
    }


def _title_of_all(titles: Sequence[str]) -> str:
    """Return a title such as ``Grades 9-12`` if all name one grade, else the first ones, joined."""
    distinct = list(dict.fromkeys(titles))
    if len(distinct) == 1:
        return distinct[0]
    if all(_GRADE_TITLE.fullmatch(title) for title in distinct):
        return (
            f"Grades {spoken_levels({each for title in distinct for each in parse_grades(title)})}"
        )
    more = len(distinct) - _TITLES_SHOWN
    return "; ".join(distinct[:_TITLES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _grade_and_set(record: StandardRecord) -> tuple[int, str]:
    levels = memberships(record)[record.standard_set_id].levels
    return min(map(grade_order, levels), default=len(GRADES)), record.standard_set_id


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else ()


def _split(codes: str) -> tuple[str, ...]:
    return tuple(filter(None, codes.split(",")))
