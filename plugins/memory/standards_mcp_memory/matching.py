"""Match the drafts of an import with the stored memories that they are versions of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from .origins import STORED, Origin, Reading, with_origin, without_places
from .records import LARGEST_ID, Document, Draft, Replaced

# Ids of headings come from hashes and not from places, so that a new section does not change the
# ids of others. Longer hashes would hardly collide, but models copy short ids without mistakes.
_IDS_OF_HEADINGS: Final = 1000


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The parts of a stored memory that a draft can change, in a compact form."""

    content_hash: str
    body: bytes
    preview: str
    tags: list[str] | None
    origins: tuple[Origin, ...]

    @classmethod
    def of(cls, document: Document) -> StoredParts:
        """Return the parts of a memory."""
        body = _digest(document.content)
        return cls(
            document.content_hash, body, document.preview, document.own_tags, document.origins
        )

    @classmethod
    def of_draft(cls, draft: Draft) -> StoredParts:
        """Return the parts of a draft that rules compare, without preview and tags."""
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
        problem: The reason why it cannot be written; None if it can.
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
        stored: The stored memories by id.
        new_id: Returns an id above its argument.
        drafts: All drafts of the import.
    """

    def __init__(
        self,
        stored: Mapping[int, StoredParts],
        new_id: Callable[[int], int],
        drafts: Sequence[Draft],
    ) -> None:
        self._stored, self._new_id, self._drafts = stored, new_id, drafts
        origins = [draft.origin for draft in drafts if draft.origin]
        files = {origin.file for origin in origins}
        self._reading = Reading(files, {origin.statement for origin in origins})
        self._parts = [StoredParts.of_draft(draft) for draft in drafts]
        self._allowed = [_allowed_ids(draft.origin) for draft in drafts]
        # Ids by the index of the draft in the list, by the place of its origin, and by its hash.
        self._ids: dict[int, int] = {}
        self._ids_by_place: dict[tuple[str, str | None], set[int]] = {}
        self._by_hash: dict[str, int] = {}
        self._taken: set[int] = set()
        self._rewritten: set[int] = set()
        self._highest = max(stored, default=0)

    def match(self) -> list[Match]:
        """Return a match for each draft, in the same order."""
        for index, draft in enumerate(self._drafts):
            if draft.id is not None:
                self._take(index, draft.id)
        for rule in _UNCHANGED:
            self._assign(rule, self._fits)
        for index in range(len(self._drafts)):
            self._share(index)
        for rule in _EDITED:
            self._rewritten |= self._assign(rule, self._may_rewrite)
        self._give_new_ids()
        for index, identifier in self._ids.items():
            if origin := self._drafts[index].origin:
                self._ids_by_place.setdefault(origin.place, set()).add(identifier)
        return self._matches()

    def forgotten(self) -> dict[int, tuple[Origin, ...]]:
        """Return the remaining origins of unmatched memories that lost places to drafts."""
        left = {
            identifier: without_places(parts.origins, self._places_of_others(identifier))
            for identifier, parts in self._stored.items()
            if identifier not in self._taken
        }
        return {
            identifier: origins
            for identifier, origins in left.items()
            if origins != self._stored[identifier].origins
        }

    def _give_new_ids(self) -> None:
        # Ids of front matters first, so that no other draft gets one of them.
        for index, allowed in enumerate(self._allowed):
            if allowed and not self._share(index):
                self._take_one_of(index, allowed)
        for index, allowed in enumerate(self._allowed):
            if not allowed and not self._share(index):
                self._take(index, self._new())
            self._highest = max(self._highest, self._ids.get(index, 0))

    def _assign(
        self, rule: Callable[[StoredParts], Iterable[Hashable]], fits: Callable[[int, int], bool]
    ) -> set[int]:
        """Give memories to drafts with a common key, in the order of ids, and return their ids."""
        free: dict[Hashable, list[int]] = {}
        for identifier in sorted(self._stored.keys() - self._taken):
            for key in rule(self._stored[identifier]):
                free.setdefault(key, []).append(identifier)
        assigned: set[int] = set()
        for index, parts in enumerate(self._parts):
            if index in self._ids:
                continue
            candidates = chain.from_iterable(free.get(key, ()) for key in rule(parts))
            fitting = (
                identifier
                for identifier in candidates
                if identifier not in assigned and fits(identifier, index)
            )
            if (best := next(fitting, None)) is not None:
                self._take(index, best)
                assigned.add(best)
        return assigned

    def _take(self, index: int, identifier: int) -> None:
        self._ids[index] = identifier
        self._taken.add(identifier)
        self._by_hash[self._drafts[index].content_hash] = identifier

    def _share(self, index: int) -> bool:
        """Give a draft the memory of an equal draft; return True if it has an id now."""
        identifier = self._by_hash.get(self._drafts[index].content_hash)
        if index not in self._ids and identifier is not None and self._fits(identifier, index):
            self._ids[index] = identifier
        return index in self._ids

    def _fits(self, identifier: int, index: int) -> bool:
        allowed = self._allowed[index]
        return allowed is None or identifier in allowed

    def _may_rewrite(self, identifier: int, index: int) -> bool:
        """Return True if nothing else states the memory."""
        origin = self._drafts[index].origin
        return self._fits(identifier, index) and all(
            (origin and stored.place == origin.place) or self._reading.lacks(stored)
            for stored in self._stored[identifier].origins
        )

    def _take_one_of(self, index: int, allowed: range) -> None:
        """Give a draft one of its allowed ids for a new memory, if one is free."""
        origin = self._drafts[index].origin
        # The heading decides, not its position, so each new collection gets the same ids.
        start = int.from_bytes(_digest((origin and origin.heading) or "")) % len(allowed)
        for identifier in (*allowed[start:], *allowed[:start]):
            if identifier not in self._stored and identifier not in self._taken:
                self._take(index, identifier)
                return

    def _new(self) -> int:
        identifier = self._new_id(self._highest)
        while identifier in self._taken:
            identifier = self._new_id(identifier)
        return identifier

    def _matches(self) -> list[Match]:
        indexes: dict[int, list[int]] = {}
        for index, identifier in sorted(self._ids.items()):
            indexes.setdefault(identifier, []).append(index)
        matches = [
            Match(draft, problem=self._problem(index)) for index, draft in enumerate(self._drafts)
        ]
        for identifier, equal in indexes.items():
            origins = self._origins(identifier, equal)
            is_named = any(self._drafts[index].id is not None for index in equal)
            replaces = {index: self._replaced(index) for index in equal}
            # A changed draft writes the memory, not an equal one that is unchanged.
            writer = min(equal, key=lambda index: replaces[index] == "origins")
            for index in equal:
                draft = self._drafts[index]
                matches[index] = Match(
                    replace(draft, id=identifier, origins=origins, replaces=replaces[index]),
                    is_repeated=draft.id is None and (is_named or index != writer),
                )
        return matches

    def _origins(self, identifier: int, indexes: Iterable[int]) -> tuple[Origin, ...]:
        """Return the origins of a memory after these drafts are written."""
        parts = self._stored.get(identifier)
        origins = parts.origins if parts and identifier not in self._rewritten else ()
        for draft in map(self._drafts.__getitem__, indexes):
            for new in (draft.origin,) if draft.origin else draft.origins or (STORED,):
                origins = with_origin(origins, new)
        return without_places(origins, self._places_of_others(identifier))

    def _places_of_others(self, identifier: int) -> set[tuple[str, str | None]]:
        """Return the places of a memory whose drafts were matched with other memories."""
        parts = self._stored.get(identifier)
        return {
            origin.place
            for origin in (parts.origins if parts else ())
            if (ids := self._ids_by_place.get(origin.place)) and identifier not in ids
        }

    def _replaced(self, index: int) -> Replaced:
        """Return the parts of the memory that a draft replaces."""
        draft, parts = self._drafts[index], self._stored.get(self._ids[index])
        if draft.origin is None or parts is None:
            return "stated"
        before = [origin for origin in parts.origins if origin.place == draft.origin.place]
        if draft.origin.version in {origin.version for origin in before or parts.origins}:
            # The file has not changed, but a tool may have changed the memory since.
            return "origins"
        return "all" if before or draft.content_hash != parts.content_hash else "stated"

    def _problem(self, index: int) -> str | None:
        allowed = self._allowed[index]
        if index in self._ids or allowed is None:
            return None
        if len(allowed) == 1:
            return f"names id {allowed[0]}, which another memory has"
        return f"names ids {allowed[0]} to {allowed[-1]}, which other memories have"


def _allowed_ids(origin: Origin | None) -> range | None:
    """Return the ids that `id: NUMBER` in the front matter allows; None without a number.

    A file with one memory gets the number as its id. The headings of a file share a thousand ids:
    7000 to 7999 for 7.
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


def _rewritable(parts: StoredParts) -> list[Origin]:
    """Return the origins whose text belongs to this memory alone."""
    return [origin for origin in parts.origins if origin.version]


def _statements(parts: StoredParts) -> Iterable[Hashable]:
    return [origin.statement for origin in parts.origins if origin != STORED]


def _hashes(parts: StoredParts) -> Iterable[Hashable]:
    return [parts.content_hash]


def _keys(parts: StoredParts) -> Iterable[Hashable]:
    origins = [origin for origin in _rewritable(parts) if origin.key]
    return [(origin.root, origin.key, origin.heading) for origin in origins]


def _keys_at_places(parts: StoredParts) -> Iterable[Hashable]:
    return [(origin.key, origin.place) for origin in _rewritable(parts) if origin.key]


def _last_places(parts: StoredParts) -> Iterable[Hashable]:
    return [origin.place for origin in _rewritable(parts)[-1:]]


def _headings(parts: StoredParts) -> Iterable[Hashable]:
    return [origin.place for origin in _rewritable(parts)]


def _renamed(parts: StoredParts) -> Iterable[Hashable]:
    named = [origin for origin in _rewritable(parts) if origin.heading is not None]
    return [(origin.file, parts.body) for origin in named if parts.body != _EMPTY]


_UNCHANGED: Final = (_statements, _hashes)
_EDITED: Final = (_keys_at_places, _keys, _last_places, _headings, _renamed)
