"""Match the drafts of an import with the stored memories that they are versions of.

A memory has one origin for each file and heading that states it, and `STORED` if a tool or a line
of JSONL stored it. An import adds the origins that it reads, and takes their places from the other
memories. It rewrites a memory for an edited file only if nothing else states the old text;
otherwise it makes a new memory. A prune removes the origins that are gone, and deletes a memory
without origins. `STORED` is never gone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Final, NamedTuple, TypeAlias

from .records import LARGEST_ID, STORED, Document, Draft, Origin, Replaced, Statement

# Ids of headings come from hashes and not from places, so that a new section does not change the
# ids of others. Longer hashes would hardly collide, but models copy short ids without mistakes.
_IDS_OF_HEADINGS: Final = 1000

Origins: TypeAlias = tuple[Origin, ...]
_Rule: TypeAlias = Callable[[Origins, Document | Draft], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Reading:
    """The files that an import has read, and the texts that they state."""

    files: AbstractSet[str]
    statements: AbstractSet[Statement]

    @classmethod
    def of(cls, drafts: Iterable[Draft], files: Iterable[str] = ()) -> Reading:
        """Return the files of these drafts, and more files without any."""
        origins = [draft.origin for draft in drafts if draft.origin]
        statements = {origin.statement for origin in origins}
        return cls({*files, *(origin.file for origin in origins)}, statements)

    def lacks(self, origin: Origin) -> bool:
        """Return True if the file of an origin no longer states the memory."""
        if origin == STORED:
            return False
        if origin.file in self.files:
            return origin.statement not in self.statements
        # If the folder around it is missing too, it may be on another disk or machine.
        return os.path.exists(Path(origin.root).parent) and _is_gone(origin.file)  # noqa: PTH110


class Match(NamedTuple):
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
        stored: Mapping[int, Document],
        new_id: Callable[[int], int],
        drafts: Sequence[Draft],
    ) -> None:
        self._stored, self._new_id, self._drafts = stored, new_id, drafts
        self._reading = Reading.of(drafts)
        self._allowed = [_allowed_ids(draft.origin) for draft in drafts]
        # Ids by the index of the draft in the list, by the place of its origin, and by its text.
        self._ids: dict[int, int] = {}
        self._ids_by_place: dict[tuple[str, str | None], set[int]] = {}
        self._by_text: dict[Hashable, int] = {}
        self._taken: set[int] = set()
        self._rewritten: set[int] = set()

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

    def forgotten(self) -> dict[int, Origins]:
        """Return the remaining origins of unmatched memories that lost places to drafts."""
        left = {
            identifier: _without_places(document.origins, self._places_of_others(identifier))
            for identifier, document in self._stored.items()
            if identifier not in self._taken
        }
        return {
            identifier: origins
            for identifier, origins in left.items()
            if origins != self._stored[identifier].origins
        }

    def _assign(self, rule: _Rule, fits: Callable[[int, int], bool]) -> set[int]:
        """Give memories to drafts with a common key, in the order of ids, and return their ids."""
        free: dict[Hashable, list[int]] = {}
        for identifier in sorted(self._stored.keys() - self._taken):
            document = self._stored[identifier]
            for key in rule(document.origins, document):
                free.setdefault(key, []).append(identifier)
        assigned: set[int] = set()
        for index, draft in enumerate(self._drafts):
            if index in self._ids:
                continue
            keys = rule(draft.own_origins, draft)
            candidates = chain.from_iterable(free.get(key, ()) for key in keys)
            fitting = (doc_id for doc_id in candidates if doc_id not in assigned)
            best = next((doc_id for doc_id in fitting if fits(doc_id, index)), None)
            if best is not None:
                self._take(index, best)
                assigned.add(best)
        return assigned

    def _take(self, index: int, identifier: int) -> None:
        self._ids[index] = identifier
        self._taken.add(identifier)
        self._by_text[_text(self._drafts[index])] = identifier

    def _share(self, index: int) -> bool:
        """Give a draft the memory of an equal draft; return True if it has an id now."""
        identifier = self._by_text.get(_text(self._drafts[index]))
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

    def _give_new_ids(self) -> None:
        # Ids of front matters first, so that no other draft gets one of them.
        for index, allowed in enumerate(self._allowed):
            if allowed and not self._share(index):
                origin = self._drafts[index].origin
                # The heading decides, not its position, so each new collection gets the same ids.
                heading = (origin and origin.heading) or ""
                start = int.from_bytes(hashlib.sha256(heading.encode()).digest()) % len(allowed)
                in_turn = chain(allowed[start:], allowed[:start])
                free = (one for one in in_turn if one not in self._stored)
                identifier = next((one for one in free if one not in self._taken), None)
                if identifier is not None:
                    self._take(index, identifier)
        highest = max(self._stored, default=0)
        for index, allowed in enumerate(self._allowed):
            if not allowed and not self._share(index):
                highest = self._new_id(highest)
                while highest in self._taken:
                    highest = self._new_id(highest)
                self._take(index, highest)
            highest = max(highest, self._ids.get(index, 0))

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

    def _origins(self, identifier: int, indexes: Iterable[int]) -> Origins:
        """Return the origins of a memory after these drafts are written."""
        document = self._stored.get(identifier)
        origins = document.origins if document and identifier not in self._rewritten else ()
        for draft in map(self._drafts.__getitem__, indexes):
            for new in draft.own_origins or draft.origins or (STORED,):
                origins = with_origin(origins, new)
        return _without_places(origins, self._places_of_others(identifier))

    def _places_of_others(self, identifier: int) -> set[tuple[str, str | None]]:
        """Return the places of a memory whose drafts were matched with other memories."""
        document = self._stored.get(identifier)
        return {
            origin.place
            for origin in (document.origins if document else ())
            if (ids := self._ids_by_place.get(origin.place)) and identifier not in ids
        }

    def _replaced(self, index: int) -> Replaced:
        """Return the parts of the memory that a draft replaces."""
        draft, document = self._drafts[index], self._stored.get(self._ids[index])
        if draft.origin is None or document is None:
            return "stated"
        before = [origin for origin in document.origins if origin.place == draft.origin.place]
        if draft.origin.version in {origin.version for origin in before or document.origins}:
            # The file has not changed, but a tool may have changed the memory since.
            return "origins"
        return "all" if before or _text(draft) != _text(document) else "stated"

    def _problem(self, index: int) -> str | None:
        allowed = self._allowed[index]
        if index in self._ids or allowed is None:
            return None
        if len(allowed) == 1:
            return f"names id {allowed[0]}, which another memory has"
        return f"names ids {allowed[0]} to {allowed[-1]}, which other memories have"


def with_origin(origins: Origins, new: Origin) -> Origins:
    """Return origins with a new one, which replaces an origin of the same place."""
    before = next((origin for origin in origins if origin.place == new.place), None)
    if before is None:
        return (*origins, new)
    if PurePath(new.root).is_relative_to(before.root):
        # A single file that is imported again still belongs to the folder imported before.
        new = replace(new, root=before.root)
    return tuple(new if origin is before else origin for origin in origins)


def _without_places(origins: Origins, places: Collection[tuple[str, str | None]]) -> Origins:
    """Return the origins outside of these places.

    If no origin is left, return all of them without versions, so that a prune still knows the
    folder of the memory.
    """
    left = tuple(origin for origin in origins if origin.place not in places)
    return left or tuple(replace(origin, version="") for origin in origins)


def _is_gone(file: str) -> bool:
    """Return True if the file is missing. A file in an unreadable folder counts as present."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


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


def _text(item: Document | Draft) -> Hashable:
    return item.title, item.content


def _unchanged_place(origins: Origins, _item: Document | Draft) -> Iterable[Hashable]:
    return [origin.statement for origin in origins if origin != STORED]


def _same_text(_origins: Origins, item: Document | Draft) -> Iterable[Hashable]:
    return [_text(item)]


def _key_at_place(origins: Origins, _item: Document | Draft) -> Iterable[Hashable]:
    return [(origin.key, origin.place) for origin in origins if origin.version and origin.key]


def _key(origins: Origins, _item: Document | Draft) -> Iterable[Hashable]:
    keyed = [origin for origin in origins if origin.version and origin.key]
    return [(origin.root, origin.key, origin.heading) for origin in keyed]


def _place(origins: Origins, _item: Document | Draft) -> Iterable[Hashable]:
    return [origin.place for origin in origins if origin.version]


def _renamed_heading(origins: Origins, item: Document | Draft) -> Iterable[Hashable]:
    body = item.content.strip()
    named = [origin for origin in origins if origin.version and origin.heading is not None]
    return [(origin.file, body) for origin in named if body]


# An origin without a version belongs to a memory whose place has another memory now.
_UNCHANGED: Final[Sequence[_Rule]] = (_unchanged_place, _same_text)
_EDITED: Final[Sequence[_Rule]] = (_key_at_place, _key, _place, _renamed_heading)
