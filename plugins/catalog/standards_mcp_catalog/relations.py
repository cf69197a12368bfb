"""Stated relations between standards: crosswalks, successors, progressions.

Their kinds are the associations of CASE, https://www.imsglobal.org/spec/case/v1p1, and their
inverses, such as ``replacedBy`` and ``replaces``. A record states its own relations in fields in
snake case, such as ``replaced_by``, with identifiers of the other standards. A crosswalk states
relations between records of other publishers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from .records import StandardRecord

_SYMMETRIC: Final = ("exactMatchOf", "isPeerOf", "isTranslationOf", "isRelatedTo")
_INVERSES: Final = {"replacedBy": "replaces", "isPartOf": "hasPart", "precedes": "follows"}
_STATED_AS: Final = {inverse: kind for kind, inverse in _INVERSES.items()}

KINDS: Final = (
    "exactMatchOf", "replacedBy", "replaces", "isPeerOf", "isTranslationOf", "isPartOf", "hasPart",
    "precedes", "follows", "isRelatedTo",
)  # fmt: skip
"""Every kind, the closest first."""
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
    an inverse, and the ends of a symmetric one are in their order, so that equal links are equal.
    """

    start: str
    kind: str
    end: str


class Crosswalk(NamedTuple):
    """A source of relations between records of others: a file, or a CASE package."""

    id: str
    title: str


class CrosswalkLinks(NamedTuple):
    """Relations that a crosswalk states.

    Attributes:
        adds: True if they are added to the earlier ones, False if they replace them.
    """

    crosswalk: Crosswalk
    links: Iterable[Link]
    adds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRelation:
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
    return _INVERSES.get(kind) or _STATED_AS.get(kind, kind)


def link(start: str, kind: str, end: str) -> Link:
    """Return the one link for a relation of any of the `KINDS`."""
    if kind in _STATED_AS:
        return Link(end, _STATED_AS[kind], start)
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
    """Return these kinds in the order of `KINDS`."""
    return [kind for kind in KINDS if kind in kinds]


def _folded(words: str) -> str:
    return re.sub(r"[\W_]+", "", words).casefold()


_BY_WORDS: Final = {
    _folded(each): kind for kind, words in _WORDS.items() for each in (kind, *words.split("|"))
}
