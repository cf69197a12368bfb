"""Find the stored memory that each draft of an import is a new version of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .origins import Origin
from .records import LARGEST_ID, Document, Draft


@dataclass(frozen=True, slots=True)
class Known:
    """The parts of a stored memory that decide whether a draft changes it."""

    content_hash: str
    body: bytes
    preview: str
    tags: list[str] | None
    origin: Origin | None

    @classmethod
    def of(cls, document: Document) -> Known:
        """Return the parts of a memory."""
        body = _digest(document.content)
        return cls(
            document.content_hash, body, document.preview, document.own_tags, document.origin
        )

    def says(self, draft: Draft) -> bool:
        """Return True if writing the draft would change nothing, or undo a change by a tool."""
        if draft.origin not in (None, self.origin):
            return False
        is_as_imported = bool(draft.origin) and draft.origin == self.origin
        if is_as_imported and draft.content_hash != self.content_hash:
            return True  # a tool has changed the memory since, and the file has not changed
        return (
            draft.content_hash == self.content_hash
            and draft.preview in (None, self.preview)
            and (draft.tags is None or list(draft.tags) == self.tags)
        )


@dataclass(frozen=True, slots=True)
class Match:
    """A draft with the id that it gets.

    Attributes:
        is_named: True if the draft itself names the id.
        problem: The reason for which it cannot be written; None if it can.
    """

    draft: Draft
    is_named: bool = False
    problem: str | None = None


class Matcher:
    """Matches all drafts of one import with the stored memories.

    Each memory belongs to one draft: first to a draft that has not changed, then to one of the same
    heading, then to one whose heading alone has changed. So sections that were moved or renamed,
    and several headings of one name, keep their memories.

    Args:
        known: The stored memories by id.
        new_id: Returns an id above the one that it gets.
    """

    def __init__(self, known: Mapping[int, Known], new_id: Callable[[int], int]) -> None:
        self._known, self._new_id = known, new_id
        self._highest = max(known, default=0)
        self._ids: dict[int, int] = {}
        # The drafts by the ids that they have taken, and these ids by the hashes of the drafts.
        self._taken: dict[int, Draft] = {}
        self._by_hash: dict[str, int] = {}

    def match(self, drafts: Sequence[Draft]) -> list[Match]:
        """Return a match for each draft, in the same order."""
        for place, draft in enumerate(drafts):
            if draft.id is not None:
                self._take(place, draft, draft.id)
        reserved = {*self._taken, *filter(None, map(_wanted_id, drafts))}
        for of_known, of_draft in _RULES[:_RULES_FOR_UNCHANGED]:
            self._assign(drafts, of_known, of_draft)
        for place, draft in enumerate(drafts):
            if place not in self._ids and draft.content_hash in self._by_hash:
                self._ids[place] = self._by_hash[draft.content_hash]
        for of_known, of_draft in _RULES[_RULES_FOR_UNCHANGED:]:
            self._assign(drafts, of_known, of_draft)
        return [self._matched(place, draft, reserved) for place, draft in enumerate(drafts)]

    def _assign(
        self,
        drafts: Sequence[Draft],
        of_known: Callable[[Known], Hashable],
        of_draft: Callable[[Draft], Hashable],
    ) -> None:
        """Give memories to drafts with the same key, in the order of ids."""
        free: dict[Hashable, list[int]] = {}
        for identifier in sorted(self._known.keys() - self._taken.keys(), reverse=True):
            if key := of_known(self._known[identifier]):
                free.setdefault(key, []).append(identifier)
        for place, draft in enumerate(drafts):
            if place not in self._ids and (key := of_draft(draft)) and free.get(key):
                self._take(place, draft, free[key].pop())

    def _take(self, place: int, draft: Draft, identifier: int) -> None:
        self._ids[place] = identifier
        origin = self._origin(draft, identifier)
        self._taken[identifier] = replace(draft, id=identifier, origin=origin)
        self._by_hash[draft.content_hash] = identifier

    def _matched(self, place: int, draft: Draft, reserved: set[int]) -> Match:
        if place not in self._ids and draft.content_hash in self._by_hash:
            self._ids[place] = self._by_hash[draft.content_hash]
        if place not in self._ids:
            wanted = _wanted_id(draft)
            if wanted in self._known or wanted in self._taken:
                problem = f"names id {wanted}, which another memory has"
                return Match(draft, problem=problem)
            identifier = wanted or self._new_id(self._highest)
            while not wanted and identifier in reserved:
                identifier = self._new_id(self._highest)
            self._take(place, draft, identifier)
        identifier = self._ids[place]
        self._highest = max(self._highest, identifier)
        # Of equal drafts, the first one says where the memory comes from.
        origin = self._taken[identifier].origin
        return Match(replace(draft, id=identifier, origin=origin), draft.id is not None)

    def _origin(self, draft: Draft, identifier: int) -> Origin | None:
        """Return the origin to store with a draft; None keeps the stored one."""
        if draft.origin is None:
            return None
        origin = replace(draft.origin, content_hash=draft.content_hash)
        stored = self._known[identifier].origin if identifier in self._known else None
        if stored is None:
            return origin
        if stored.file == origin.file:
            # A file that was imported alone still belongs to the folder that was imported.
            return replace(origin, root=stored.root) if origin.is_within(stored.root) else origin
        is_moved = stored.root == origin.root or not Path(stored.file).exists()
        return origin if is_moved else None


def _wanted_id(draft: Draft) -> int | None:
    """Return the id that the front matter of a file with one memory names, if it is a number."""
    key = draft.origin.key if draft.origin and draft.origin.heading is None else None
    if key is None or not (key.isascii() and key.isdecimal() and len(key) <= len(str(LARGEST_ID))):
        return None
    return int(key) if 1 <= int(key) <= LARGEST_ID else None


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.strip().encode("utf-8", "surrogatepass")).digest()


_EMPTY: Final = _digest("")


def _unchanged(origin: Origin | None, content_hash: str) -> Hashable:
    return origin and (origin.file, origin.heading, content_hash)


def _heading(origin: Origin | None) -> Hashable:
    return origin and (origin.file, origin.heading)


def _key(origin: Origin | None) -> Hashable:
    return origin and origin.key and (origin.root, origin.key, origin.heading)


def _renamed(origin: Origin | None, body: bytes) -> Hashable:
    return origin and origin.heading is not None and body != _EMPTY and (origin.file, body)


_RULES: Final[list[tuple[Callable[[Known], Hashable], Callable[[Draft], Hashable]]]] = [
    (
        lambda known: _unchanged(known.origin, known.origin.content_hash if known.origin else ""),
        lambda draft: _unchanged(draft.origin, draft.content_hash),
    ),
    (lambda known: known.content_hash, lambda draft: draft.content_hash),
    (lambda known: _key(known.origin), lambda draft: _key(draft.origin)),
    (lambda known: _heading(known.origin), lambda draft: _heading(draft.origin)),
    (
        lambda known: _renamed(known.origin, known.body),
        lambda draft: _renamed(draft.origin, _digest(draft.content)),
    ),
]
_RULES_FOR_UNCHANGED: Final = 2
