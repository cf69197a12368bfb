"""Match the drafts of an import with stored memories, so that an edited file updates its memories.

A memory has one origin for each file and heading that contains it, and `STORED` if a tool or a line
of JSONL stored it. An import adds the origins of its drafts to their memories, and removes origins
of the same places (file and heading) from other memories. It rewrites a memory for an edited file
only if no other origin contains the old text; otherwise it makes a new memory. A prune removes
origins that no longer contain the memory, and deletes memories without origins, but never `STORED`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from .records import LARGEST_ID, STORED, Document, Draft, Origin, ReplacedParts

# Ids of headings come from hashes and not from positions, so that a new section does not change the
# ids of others. Longer hashes would hardly collide, but models copy short ids without mistakes.
_IDS_OF_HEADINGS: Final = 1000

Origins: TypeAlias = tuple[Origin, ...]
_Rule: TypeAlias = Callable[[Origin, Document | Draft], Hashable]


@dataclass(frozen=True, slots=True)
class ImportedFiles:
    """The files that an import has read, and the versions of their texts."""

    files: AbstractSet[str]
    versions: AbstractSet[tuple[str, str | None, str]]

    @classmethod
    def of(cls, drafts: Iterable[Draft], files: Iterable[str] = ()) -> ImportedFiles:
        """Return the files of these drafts, and *files*, which may have no drafts."""
        origins = [draft.origin for draft in drafts if draft.origin]
        versions = {origin.versioned_place for origin in origins}
        return cls({*files, *(origin.file for origin in origins)}, versions)

    def is_removed(self, origin: Origin) -> bool:
        """Return True if the file of an origin no longer contains the memory."""
        if origin == STORED:
            return False
        if origin.file in self.files:
            return origin.versioned_place not in self.versions
        # If the folder around the root is missing, too, the file may be on another disk or machine.
        return os.path.exists(Path(origin.root).parent) and _is_missing(origin.file)  # noqa: PTH110


@dataclass(slots=True)
class Match:
    """A draft and the id of its memory.

    Attributes:
        draft: The draft; `Matcher.match` sets its id and the origins to store.
        allowed_ids: The ids that the front matter allows; None for any.
        is_repeated: True if another draft of the import writes the memory.
    """

    draft: Draft
    allowed_ids: range | None
    id: int | None = None
    is_repeated: bool = False

    @property
    def problem(self) -> str | None:
        """The reason why the draft cannot be written; None if it can."""
        if self.id is not None or self.allowed_ids is None:
            return None
        first, last = self.allowed_ids[0], self.allowed_ids[-1]
        if first == last:
            return f"names id {first}, which another memory has"
        return f"names ids {first} to {last}, which other memories have"

    def allows(self, doc_id: int) -> bool:
        """Return True if the draft may have this id."""
        return self.allowed_ids is None or doc_id in self.allowed_ids


class Matcher:
    """Matches all drafts of one import with the stored memories.

    Each memory belongs to one draft: first to an unchanged draft, then to a draft with the same
    heading, then to a draft whose heading alone has changed. So sections that were moved or
    renamed, and several headings of one name, keep their memories. Equal drafts share a memory.

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
        self._stored, self._new_id = stored, new_id
        self._imported = ImportedFiles.of(drafts)
        self._matches = [Match(draft, _allowed_ids(draft.origin)) for draft in drafts]
        # The ids of matched drafts, and by their title and content.
        self._taken_ids: set[int] = set()
        self._ids_by_text: dict[Hashable, int] = {}
        self._rewritten: set[int] = set()
        self._ids_by_place: dict[tuple[str, str | None], set[int]] = {}

    def match(self) -> list[Match]:
        """Return a match for each draft, in the same order."""
        for match in self._matches:
            if match.draft.id is not None:
                self._take(match, match.draft.id)
        for rule in _UNCHANGED_RULES:
            self._assign(rule, Match.allows)
        for match in self._matches:
            self._share_equal(match)
        for rule in _EDITED_RULES:
            self._rewritten |= self._assign(rule, self._may_rewrite)
        self._give_new_ids()
        self._set_ids_and_origins()
        return self._matches

    def remaining_origins(self) -> dict[int, Origins]:
        """Return the remaining origins of unmatched memories that lost origins to drafts, by id."""
        remaining = {
            doc_id: _without_places(document.origins, self._lost_places(doc_id))
            for doc_id, document in self._stored.items()
            if doc_id not in self._taken_ids
        }
        return {
            doc_id: origins
            for doc_id, origins in remaining.items()
            if origins != self._stored[doc_id].origins
        }

    def _assign(self, rule: _Rule, allows: Callable[[Match, int], bool]) -> set[int]:
        """Match drafts with memories that have a common key, and return the ids of the memories."""
        free: dict[Hashable, list[int]] = {}
        for doc_id in sorted(self._stored.keys() - self._taken_ids):
            document = self._stored[doc_id]
            for key in _keys(rule, document.origins, document):
                free.setdefault(key, []).append(doc_id)
        assigned: set[int] = set()
        for match in self._matches:
            if match.id is not None:
                continue
            keys = _keys(rule, match.draft.own_origins or (STORED,), match.draft)
            candidates = [doc_id for key in keys for doc_id in free.get(key, ())]
            fitting = (doc_id for doc_id in candidates if doc_id not in assigned)
            best = next((doc_id for doc_id in fitting if allows(match, doc_id)), None)
            if best is not None:
                self._take(match, best)
                assigned.add(best)
        return assigned

    def _take(self, match: Match, doc_id: int) -> None:
        match.id = doc_id
        self._taken_ids.add(doc_id)
        self._ids_by_text[_title_and_content(match.draft)] = doc_id

    def _share_equal(self, match: Match) -> bool:
        """Give a draft the memory of an equal draft; return True if it has an id now."""
        doc_id = self._ids_by_text.get(_title_and_content(match.draft))
        if match.id is None and doc_id is not None and match.allows(doc_id):
            match.id = doc_id
        return match.id is not None

    def _may_rewrite(self, match: Match, doc_id: int) -> bool:
        """Return True if only the draft's own place and removed origins contain the memory."""
        places = {origin.place for origin in match.draft.own_origins}
        return match.allows(doc_id) and all(
            origin.place in places or self._imported.is_removed(origin)
            for origin in self._stored[doc_id].origins
        )

    def _give_new_ids(self) -> None:
        # Ids of front matters first, so that no other draft gets one of them.
        for match in self._matches:
            if match.allowed_ids and not self._share_equal(match):
                # The heading decides, not its position, so each new collection gets the same ids.
                heading = (match.draft.origin and match.draft.origin.heading) or ""
                digest = int.from_bytes(hashlib.sha256(heading.encode()).digest())
                start = digest % len(match.allowed_ids)
                in_turn = chain(match.allowed_ids[start:], match.allowed_ids[:start])
                free = (doc_id for doc_id in in_turn if doc_id not in self._stored)
                doc_id = next((doc_id for doc_id in free if doc_id not in self._taken_ids), None)
                if doc_id is not None:
                    self._take(match, doc_id)
        highest = max(self._stored, default=0)
        for match in self._matches:
            if not match.allowed_ids and not self._share_equal(match):
                highest = self._new_id(highest)
                while highest in self._taken_ids:
                    highest = self._new_id(highest)
                self._take(match, highest)
            highest = max(highest, match.id or 0)

    def _set_ids_and_origins(self) -> None:
        """Set the ids and the origins of the matched drafts."""
        equal_by_id: dict[int, list[Match]] = {}
        for match in self._matches:
            if match.id is not None:
                equal_by_id.setdefault(match.id, []).append(match)
                if origin := match.draft.origin:
                    self._ids_by_place.setdefault(origin.place, set()).add(match.id)
        for doc_id, equal_matches in equal_by_id.items():
            document = self._stored.get(doc_id)
            origins = document.origins if document and doc_id not in self._rewritten else ()
            for match in equal_matches:
                for new in match.draft.own_origins or match.draft.origins or (STORED,):
                    origins = with_origin(origins, new)
            origins = _without_places(origins, self._lost_places(doc_id))
            is_named = any(match.draft.id is not None for match in equal_matches)
            parts = [_parts_to_replace(match.draft, document) for match in equal_matches]
            # Of equal drafts, the first that replaces more than origins writes the memory.
            writer = next((i for i, part in enumerate(parts) if part != "origins"), 0)
            for index, match in enumerate(equal_matches):
                match.is_repeated = match.draft.id is None and (is_named or index != writer)
                match.draft = replace(
                    match.draft, id=doc_id, origins=origins, replaces=parts[index]
                )

    def _lost_places(self, doc_id: int) -> set[tuple[str, str | None]]:
        """Return the places of a memory at which drafts were matched with other memories."""
        document = self._stored.get(doc_id)
        return {
            origin.place
            for origin in (document.origins if document else ())
            if (ids := self._ids_by_place.get(origin.place)) and doc_id not in ids
        }


def _parts_to_replace(draft: Draft, document: Document | None) -> ReplacedParts:
    """Return the parts of the memory that a draft replaces."""
    if draft.origin is None or document is None:
        return "stated"
    before = [origin for origin in document.origins if origin.place == draft.origin.place]
    if draft.origin.version in {origin.version for origin in before or document.origins}:
        # The file has not changed, but a tool may have changed the memory since.
        return "origins"
    return (
        "all" if before or _title_and_content(draft) != _title_and_content(document) else "stated"
    )


def with_origin(origins: Origins, new: Origin) -> Origins:
    """Return origins with a new one, which replaces an origin of the same place."""
    before = next((origin for origin in origins if origin.place == new.place), None)
    if before is None:
        return (*origins, new)
    if PurePath(new.root).is_relative_to(before.root):
        # A single file that is imported again still belongs to the folder imported before.
        new = new._replace(root=before.root)
    return tuple(new if origin is before else origin for origin in origins)


def _without_places(origins: Origins, places: Collection[tuple[str, str | None]]) -> Origins:
    """Return the origins outside of these places.

    If no origin is left, return all of them without versions, so that a prune still knows the
    folder of the memory.
    """
    remaining = tuple(origin for origin in origins if origin.place not in places)
    return remaining or tuple(origin._replace(version="") for origin in origins)


def _is_missing(file: str) -> bool:
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


def _title_and_content(item: Document | Draft) -> Hashable:
    return item.title, item.content


def _keys(rule: _Rule, origins: Origins, item: Document | Draft) -> list[Hashable]:
    return [key for origin in origins if (key := rule(origin, item))]


def _renamed_heading(origin: Origin, item: Document | Draft) -> Hashable:
    body = item.content.strip()
    return body and origin.version and origin.heading is not None and (origin.file, body)


# A rule returns a key of an origin, or a false value. A memory and a draft with a common key match.
# An origin without a version is left of a memory whose place belongs to another memory now.
_UNCHANGED_RULES: Final[Sequence[_Rule]] = (
    lambda origin, _item: origin.version and origin.versioned_place,
    lambda _origin, item: _title_and_content(item),
)
_EDITED_RULES: Final[Sequence[_Rule]] = (
    lambda origin, _item: origin.version and origin.key and (origin.key, origin.place),
    lambda origin, _item: origin.version and origin.key and (origin.root, *origin[2:4]),
    lambda origin, _item: origin.version and origin.place,
    _renamed_heading,
)
