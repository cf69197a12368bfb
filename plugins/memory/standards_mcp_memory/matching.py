"""Find the stored memory that each draft of an import is a new version of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from .origins import STORED, Origin, Reading, with_origin, without_places
from .records import LARGEST_ID, Document, Draft, Replaced

_IDS_OF_HEADINGS: Final = 1000


@dataclass(frozen=True, slots=True)
class Known:
    """The parts of a memory that decide whether a draft changes it."""

    content_hash: str
    body: bytes
    preview: str
    tags: list[str] | None
    origins: tuple[Origin, ...]

    @classmethod
    def of(cls, document: Document) -> Known:
        """Return the parts of a memory."""
        body = _digest(document.content)
        return cls(
            document.content_hash, body, document.preview, document.own_tags, document.origins
        )

    @classmethod
    def of_draft(cls, draft: Draft) -> Known:
        """Return the parts of a draft; it has the preview and the tags itself."""
        origins = (draft.origin,) if draft.origin else ()
        return cls(draft.content_hash, _digest(draft.content), "", None, origins)

    def says(self, draft: Draft) -> bool:
        """Return True if writing the draft would change nothing."""
        if draft.origins not in (None, self.origins):
            return False
        return draft.replaces == "origins" or (
            draft.content_hash == self.content_hash
            and draft.preview in (None, self.preview)
            and (draft.tags is None or list(draft.tags) == self.tags)
        )


@dataclass(frozen=True, slots=True)
class Match:
    """A draft with the id and the origins that it gets.

    Attributes:
        is_repeated: True if another draft of the import writes the memory.
        problem: The reason for which it cannot be written; None if it can.
    """

    draft: Draft
    is_repeated: bool = False
    problem: str | None = None


class Matcher:
    """Matches all drafts of one import with the stored memories.

    Each memory belongs to one draft: first to a draft that has not changed, then to one of the same
    heading, then to one whose heading alone has changed. So sections that were moved or renamed,
    and several headings of one name, keep their memories. Equal drafts share one.

    Args:
        known: The stored memories by id.
        new_id: Returns an id above the one that it gets.
        drafts: All drafts of the import.
    """

    def __init__(
        self, known: Mapping[int, Known], new_id: Callable[[int], int], drafts: Sequence[Draft]
    ) -> None:
        self._known, self._new_id, self._drafts = known, new_id, drafts
        origins = [each.origin for each in drafts if each.origin]
        files = {each.file for each in origins}
        self._reading = Reading(files, {each.statement for each in origins})
        self._parts = [Known.of_draft(each) for each in drafts]
        self._wanted = [_wanted_ids(each.origin) for each in drafts]
        # The ids by the places of the drafts in their list, and by their hashes.
        self._ids: dict[int, int] = {}
        self._ids_by_place: dict[tuple[str, str | None], set[int]] = {}
        self._by_hash: dict[str, int] = {}
        self._taken: set[int] = set()
        self._rewritten: set[int] = set()
        self._highest = max(known, default=0)

    def match(self) -> list[Match]:
        """Return a match for each draft, in the same order."""
        for place, draft in enumerate(self._drafts):
            if draft.id is not None:
                self._take(place, draft.id)
        for rule in _UNCHANGED:
            self._assign(rule, self._fits)
        for place in range(len(self._drafts)):
            self._share(place)
        for rule in _EDITED:
            self._rewritten |= self._assign(rule, self._may_rewrite)
        self._give_new_ids()
        for place, identifier in self._ids.items():
            if origin := self._drafts[place].origin:
                self._ids_by_place.setdefault(origin.place, set()).add(identifier)
        return self._matches()

    def forgotten(self) -> dict[int, tuple[Origin, ...]]:
        """Return the origins that are left to memories of no draft, if a draft has their place."""
        left = {
            identifier: without_places(known.origins, self._places_of_others(identifier))
            for identifier, known in self._known.items()
            if identifier not in self._taken
        }
        return {each: kept for each, kept in left.items() if kept != self._known[each].origins}

    def _give_new_ids(self) -> None:
        # Ids of front matters first, so that no other draft gets one of them.
        for place, wanted in enumerate(self._wanted):
            if wanted and not self._share(place):
                self._take_one_of(place, wanted)
        for place, wanted in enumerate(self._wanted):
            if not wanted and not self._share(place):
                self._take(place, self._new())
            self._highest = max(self._highest, self._ids.get(place, 0))

    def _assign(
        self, rule: Callable[[Known], Iterable[Hashable]], fits: Callable[[int, int], bool]
    ) -> set[int]:
        """Give memories to drafts with a common key, in the order of ids, and return their ids."""
        free: dict[Hashable, list[int]] = {}
        for identifier in sorted(self._known.keys() - self._taken):
            for key in rule(self._known[identifier]):
                free.setdefault(key, []).append(identifier)
        assigned: set[int] = set()
        for place, parts in enumerate(self._parts):
            if place in self._ids:
                continue
            fitting = (
                each
                for each in chain.from_iterable(free.get(key, ()) for key in rule(parts))
                if each not in assigned and fits(each, place)
            )
            if (best := next(fitting, None)) is not None:
                self._take(place, best)
                assigned.add(best)
        return assigned

    def _take(self, place: int, identifier: int) -> None:
        self._ids[place] = identifier
        self._taken.add(identifier)
        self._by_hash[self._drafts[place].content_hash] = identifier

    def _share(self, place: int) -> bool:
        """Give a draft the memory of an equal one, and return True if it has an id now."""
        identifier = self._by_hash.get(self._drafts[place].content_hash)
        if place not in self._ids and identifier is not None and self._fits(identifier, place):
            self._ids[place] = identifier
        return place in self._ids

    def _fits(self, identifier: int, place: int) -> bool:
        wanted = self._wanted[place]
        return wanted is None or identifier in wanted

    def _may_rewrite(self, identifier: int, place: int) -> bool:
        """Return True if nothing else states the memory."""
        origin = self._drafts[place].origin
        return self._fits(identifier, place) and all(
            (origin and each.place == origin.place) or self._reading.lacks(each)
            for each in self._known[identifier].origins
        )

    def _take_one_of(self, place: int, wanted: range) -> None:
        """Give a draft an id for a new memory, if one of these is free."""
        origin = self._drafts[place].origin
        # It depends on the heading and not on its place, so each new collection has the same ids.
        start = int.from_bytes(_digest((origin and origin.heading) or "")) % len(wanted)
        for identifier in (*wanted[start:], *wanted[:start]):
            if identifier not in self._known and identifier not in self._taken:
                self._take(place, identifier)
                return

    def _new(self) -> int:
        identifier = self._new_id(self._highest)
        while identifier in self._taken:
            identifier = self._new_id(identifier)
        return identifier

    def _matches(self) -> list[Match]:
        places: dict[int, list[int]] = {}
        for place, given in sorted(self._ids.items()):
            places.setdefault(given, []).append(place)
        matches = [
            Match(each, problem=self._problem(place)) for place, each in enumerate(self._drafts)
        ]
        for identifier, equal in places.items():
            origins = self._origins(identifier, equal)
            is_named = any(self._drafts[each].id is not None for each in equal)
            replaces = {each: self._replaced(each) for each in equal}
            # The one with news, if another one is as it was.
            writer = min(equal, key=lambda each: replaces[each] == "origins")
            for place in equal:
                draft = self._drafts[place]
                matches[place] = Match(
                    replace(draft, id=identifier, origins=origins, replaces=replaces[place]),
                    is_repeated=draft.id is None and (is_named or place != writer),
                )
        return matches

    def _origins(self, identifier: int, places: Iterable[int]) -> tuple[Origin, ...]:
        """Return the origins of a memory that these drafts state."""
        known = self._known.get(identifier)
        origins = known.origins if known and identifier not in self._rewritten else ()
        for draft in map(self._drafts.__getitem__, places):
            for new in (draft.origin,) if draft.origin else draft.origins or (STORED,):
                origins = with_origin(origins, new)
        return without_places(origins, self._places_of_others(identifier))

    def _places_of_others(self, identifier: int) -> set[tuple[str, str | None]]:
        """Return the places of a memory whose drafts have other memories."""
        known = self._known.get(identifier)
        return {
            each.place
            for each in (known.origins if known else ())
            if (ids := self._ids_by_place.get(each.place)) and identifier not in ids
        }

    def _replaced(self, place: int) -> Replaced:
        """Return the parts of the memory that a draft replaces."""
        draft, known = self._drafts[place], self._known.get(self._ids[place])
        if draft.origin is None or known is None:
            return "stated"
        before = [each for each in known.origins if each.place == draft.origin.place]
        if draft.origin.version in {each.version for each in before or known.origins}:
            # The text of the file is not new: a tool may have changed the memory since.
            return "origins"
        return "all" if before or draft.content_hash != known.content_hash else "stated"

    def _problem(self, place: int) -> str | None:
        wanted = self._wanted[place]
        if place in self._ids or wanted is None:
            return None
        if len(wanted) == 1:
            return f"names id {wanted[0]}, which another memory has"
        return f"names ids {wanted[0]} to {wanted[-1]}, which other memories have"


def _wanted_ids(origin: Origin | None) -> range | None:
    """Return the ids that a number in the front matter leaves to a draft; None if it has none.

    The number is the id of a file with one memory. Headings share the thousand ids that begin with
    it: 7000 to 7999 for 7.
    """
    key = origin.key if origin else None
    if not (key and key.isascii() and key.isdecimal() and len(key) <= len(str(LARGEST_ID))):
        return None
    width = 1 if origin is None or origin.heading is None else _IDS_OF_HEADINGS
    first = int(key) * width
    return range(first, first + width) if 1 <= first <= LARGEST_ID - width + 1 else None


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.strip().encode("utf-8", "surrogatepass")).digest()


_EMPTY: Final = _digest("")


def _rewritable(known: Known) -> list[Origin]:
    """Return the origins whose text no other memory has."""
    return [each for each in known.origins if each.version]


def _statements(known: Known) -> Iterable[Hashable]:
    return [each.statement for each in known.origins if each != STORED]


def _hashes(known: Known) -> Iterable[Hashable]:
    return [known.content_hash]


def _keys(known: Known) -> Iterable[Hashable]:
    return [(each.root, each.key, each.heading) for each in _rewritable(known) if each.key]


def _keys_at_places(known: Known) -> Iterable[Hashable]:
    return [(each.key, each.place) for each in _rewritable(known) if each.key]


def _last_places(known: Known) -> Iterable[Hashable]:
    return [each.place for each in _rewritable(known)[-1:]]


def _headings(known: Known) -> Iterable[Hashable]:
    return [each.place for each in _rewritable(known)]


def _renamed(known: Known) -> Iterable[Hashable]:
    named = [each for each in _rewritable(known) if each.heading is not None]
    return [(each.file, known.body) for each in named if known.body != _EMPTY]


_UNCHANGED: Final = (_statements, _hashes)
_EDITED: Final = (_keys_at_places, _keys, _last_places, _headings, _renamed)
