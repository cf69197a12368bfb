"""Stated relations between standards: crosswalks, successors, progressions; and retired standards.

Their kinds are the associations of CASE, https://www.imsglobal.org/spec/case/v1p1, and their
inverses, such as ``replacedBy`` and ``replaces``. A record states its own relations in fields in
snake case, such as ``replaced_by``, with identifiers of the other standards. A crosswalk states
relations between records of other publishers.
"""

from __future__ import annotations

import re
import time
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from .records import StandardRecord
from .vocabulary.relation_kinds import KINDS

if TYPE_CHECKING:
    from .base import Catalog
    from .results import SearchHit

_SYMMETRIC: Final = ("exactMatchOf", "isPeerOf", "isTranslationOf", "isRelatedTo")
_INVERSES: Final = {"replacedBy": "replaces", "isPartOf": "hasPart", "precedes": "follows"}
_KINDS_OF_INVERSES: Final = {inverse: kind for kind, inverse in _INVERSES.items()}

SUCCESSION: Final = ("replacedBy",)
MOST_SUCCESSORS: Final = 10

# How people write a kind, in any case, with any separators.
_WORDS: Final[Mapping[str, str]] = {
    "exactMatchOf": "exact match|exact|same as|same|equals|equal|equivalent|equivalent to",
    "replacedBy": "is replaced by|superseded by|is superseded by",
    "replaces": "supersedes",
    "isPeerOf": "peer of|peer",
    "isTranslationOf": "translation of",
    "isPartOf": "part of",
    "hasPart": "contains",
    "precedes": "is prerequisite for|prerequisite for|prerequisite of|leads to",
    "follows": "builds on",
    "isRelatedTo": "related to|related|is related",
}


class Link(NamedTuple):
    """One relation of a *kind* from *start* to *end*.

    Both ends are keys of identifiers, see `vocabulary.notation.identifier_key`. The kind is never
    an inverse, and the ends of a symmetric kind are sorted, so each relation has only one link.
    """

    start: str
    kind: str
    end: str


class Crosswalk(NamedTuple):
    """A file or a CASE package that states relations between standards of other publishers."""

    id: str
    title: str


class CrosswalkLinks(NamedTuple):
    """Relations that a crosswalk states.

    Attributes:
        adds: True if they are added to the stored ones, False if they replace them.
    """

    crosswalk: Crosswalk
    links: Iterable[Link]
    adds: bool = False


class StatedRelation(NamedTuple):
    """A relation as seen from one of its ends.

    Attributes:
        kind: One of `KINDS`: the relation from the requested record to the other one.
        origin: The titles of the packages or files that state it, separated by "; ".
        identifier: Identifier of the other standard.
        record: The other standard, or None if it is not loaded.
    """

    kind: str
    origin: str
    identifier: str
    record: StandardRecord | None = None


def inverse(kind: str) -> str:
    """Return the kind of a relation as its other end sees it."""
    return _INVERSES.get(kind) or _KINDS_OF_INVERSES.get(kind, kind)


def link(start: str, kind: str, end: str) -> Link:
    """Return the normalized link for a relation of any of the `KINDS`."""
    if kind in _KINDS_OF_INVERSES:
        return Link(end, _KINDS_OF_INVERSES[kind], start)
    if kind in _SYMMETRIC:
        start, end = sorted((start, end))
    return Link(start, kind, end)


def field_of(kind: str) -> str:
    """Return the field of a record for a kind: ``exact_match_of`` for ``exactMatchOf``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind)
    return re.sub(r"\W+", "_", words).strip("_").lower()


FIELDS: Final[Mapping[str, str]] = {field_of(kind): kind for kind in KINDS}
"""The kinds by the names of the fields in a record."""


def stated_in(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (kind, identifier) for each relation that the fields of a record state."""
    if FIELDS.keys().isdisjoint(fields):
        return  # nearly all records state no relation
    for name, kind in FIELDS.items():
        value = fields.get(name)
        listed = cast("list[object]", value) if isinstance(value, (list, tuple)) else [value]
        for each in listed:
            if isinstance(each, str) and each.strip():
                yield kind, each.strip()


def links_of(record_id: str, fields: Mapping[str, Any]) -> set[Link]:
    """Return the links that the fields of a record state."""
    from .vocabulary.notation import identifier_key  # noqa: PLC0415  - costs start-up time

    own = identifier_key(record_id) or ""
    others = ((kind, identifier_key(each) or "") for kind, each in stated_in(fields))
    return {link(own, kind, other) for kind, other in others if other not in ("", own)}


def identifier_of(key: str) -> str:
    """Return the identifier of a key; a GUID with dashes, as CASE writes it."""
    kind, _, text = key.partition(":")
    if kind != "guid":
        return text
    return re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", text.lower())


def parse_kind(words: str) -> str | None:
    """Return the kind for words such as ``Replaced by``, or None if it is unknown."""
    return _BY_WORDS.get(_folded(words))


def of_kinds(kinds: Collection[str]) -> list[str]:
    """Return *kinds* in the order of `KINDS`, without unknown ones."""
    return [kind for kind in KINDS if kind in kinds]


def _folded(words: str) -> str:
    return re.sub(r"[\W_]+", "", words).casefold()


_BY_WORDS: Final = {
    _folded(each): kind for kind, words in _WORDS.items() for each in (kind, *words.split("|"))
}

_RETIRED: Final = ("deprecated", "superseded", "retired", "withdrawn", "obsolete", "expired")
_MOST_STEPS: Final = 10
_MOST_SENTENCES: Final = 3
_RETIRED_TOO: Final = " (retired too)"
_ISO: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:[T ].*)?")


class Retirement(NamedTuple):
    """The retirement of one standard.

    Attributes:
        status: The status in its source, such as ``Superseded``.
        ended: The last day of its validity, as the source writes it, or "".
        successors: Its successors, the nearest first; the successors of a retired successor
            follow it.
        in_force: The ids of the successors that are loaded and not retired.
    """

    status: str
    ended: str = ""
    successors: tuple[StatedRelation, ...] = ()
    in_force: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data, as the tools show it."""
        found = [
            {
                "_id": each.identifier,
                "statement_notation": each.record.statement_notation if each.record else None,
                "loaded": each.record is not None,
                "in_force": each.identifier in self.in_force,
                "origin": each.origin,
            }
            for each in self.successors
        ]
        ended = {"ended": self.ended} if self.ended else {}
        return {"status": self.status, **ended, "replaced_by": found}

    def told(self, name: str) -> str:
        """Return a sentence with the status and the successors of the standard *name*."""
        in_force = [each for each in self.successors if each.identifier in self.in_force]
        names = [_name(each) for each in in_force] or [
            f"{_name(each)}{_RETIRED_TOO if each.record else ''}" for each in self.successors[:1]
        ]
        by = f"; replaced by {', '.join(names)}" if names else "; no successor is known"
        return f"{name} is retired ({self.status}){by}"


async def retirements(
    catalog: Catalog,
    records: Iterable[StandardRecord],
    today: str = "",
    known: Mapping[str, tuple[StatedRelation, ...]] = MappingProxyType({}),
) -> dict[str, Retirement]:
    """Return the retirements of the retired ones among *records*, by their ids.

    A chain of successors is followed for a few steps only, so that a long one or a circle ends.

    Args:
        today: As ``2030-12-31``; by default the present day.
        known: Successors by the ids of records, if they were read before.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    today = today or time.strftime("%Y-%m-%d")
    requested = {record.id: record for record in records}
    successors = dict(known)  # a record without successors has an empty tuple
    frontier, visited = requested, set(requested)
    for _ in range(_MOST_STEPS):
        unread = [record for id_, record in frontier.items() if id_ not in successors]
        if unread:
            stated = await catalog.relations(unread, SUCCESSION, MOST_SUCCESSORS)
            successors |= {record.id: found for record, found in zip(unread, stated, strict=True)}
        following = [relation.record for id_ in frontier for relation in successors[id_]]
        frontier = {each.id: each for each in following if each and each.id not in visited}
        visited.update(frontier)
        if not frontier:
            break
    return {
        id_: _retirement(record, successors, today)
        for id_, record in requested.items()
        if _is_retired(record, today) or successors[id_]
    }


async def retired_hits(catalog: Catalog, hits: Iterable[SearchHit]) -> dict[str, Retirement]:
    """Return the retirements of hits; most stores read the successors together with a hit."""
    hits = list(hits)
    known = {hit.record.id: hit.replaced_by for hit in hits if hit.replaced_by is not None}
    return await retirements(catalog, [hit.record for hit in hits], known=known)


def told_of(records: Iterable[StandardRecord], retired: Mapping[str, Retirement]) -> Iterator[str]:
    """Yield a sentence for each of the first retired records, and one that counts the rest."""
    found = list({each.id: each for each in records if each.id in retired}.values())
    for each in found[:_MOST_SENTENCES]:
        yield retired[each.id].told(each.statement_notation or each.id)
    if len(found) > _MOST_SENTENCES:
        yield f"{len(found) - _MOST_SENTENCES} more are retired (see retired)"


def _retirement(
    record: StandardRecord, successors: Mapping[str, tuple[StatedRelation, ...]], today: str
) -> Retirement:
    found: dict[str, StatedRelation] = {}
    pending = list(successors[record.id])
    while pending and len(found) < MOST_SUCCESSORS:
        each = pending.pop(0)
        if each.identifier not in found and each.identifier != record.id:
            found[each.identifier] = each
            pending += successors.get(each.identifier, ())
    in_force = [
        each.identifier
        for each in found.values()
        # A successor beyond the last step may itself be replaced.
        if each.record
        and not _is_retired(each.record, today)
        and successors.get(each.identifier) == ()
    ]
    status = record.publication_status or ""
    return Retirement(
        status=status if _has_retired_status(record) else "Superseded" if found else "Expired",
        ended=_end_date(record),
        successors=tuple(found.values()),
        in_force=tuple(in_force),
    )


def _name(stated: StatedRelation) -> str:
    if stated.record is None:
        return f"{stated.identifier} (not loaded here)"
    return stated.record.statement_notation or stated.identifier


def _is_retired(record: StandardRecord, today: str) -> bool:
    end = _end_date(record)
    return _has_retired_status(record) or "" < _last_day(end) <= today


def _last_day(text: str) -> str:
    """Return the last day of an ISO date, which may be a year or a month; "" for anything else."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return ""
    year, month, day = (int(each) for each in found.groups("0"))
    try:
        month = month or 12
        return date(year, month, day or monthrange(year, month)[1]).isoformat()
    except ValueError:
        return ""


def _has_retired_status(record: StandardRecord) -> bool:
    return (record.publication_status or "").strip().casefold() in _RETIRED


def _end_date(record: StandardRecord) -> str:
    end = (record.model_extra or {}).get("status_end_date")
    return end if isinstance(end, str) else ""
