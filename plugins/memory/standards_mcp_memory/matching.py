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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final, NamedTuple, TypeAlias

from .records import LARGEST_ID, STORED, Document, Draft, Origin, Origins, ReplacedParts

# Ids of headings come from hashes and not from positions, so that a new section does not change the
# ids of others. Longer hashes would hardly collide, but models copy short ids without mistakes.
_IDS_OF_HEADINGS: Final = 1000

_Rule: TypeAlias = Callable[[Origin, Document | Draft], Hashable]


class StaleMemory(NamedTuple):
    """A memory that a file no longer contains, and its remaining origins."""

    document: Document
    remaining_origins: Origins

    def as_draft(self) -> Draft:
        """Return a draft that stores the remaining origins."""
        document, origins = self
        texts = document.title, document.content
        return Draft(*texts, id=document.id, origins=origins, replaces="origins")


@dataclass(slots=True)
class _Match:
    """A draft, the ids that its front matter allows (None for any), and the id of its memory."""

    draft: Draft
    allowed_ids: range | None
    id: int | None = None

    def allows(self, doc_id: int) -> bool:
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
        files: The files that were read, also such without drafts.
    """

    def __init__(
        self,
        stored: Mapping[int, Document],
        new_id: Callable[[int], int],
        drafts: Sequence[Draft],
        files: Iterable[str] = (),
    ) -> None:
        self._stored, self._new_id = stored, new_id
        origins = [draft.origin for draft in drafts if draft.origin]
        self._files = {*files, *(origin.file for origin in origins)}
        self._versions = {origin.versioned_place for origin in origins}
        self._matches = [_Match(draft, _allowed_ids(draft.origin)) for draft in drafts]
        # The ids of matched drafts, and by their title and content.
        self._taken_ids: set[int] = set()
        self._ids_by_text: dict[Hashable, int] = {}
        self._ids_by_place: dict[tuple[str, str | None], set[int]] = {}

    def match(self) -> list[Draft]:
        """Return the drafts with the ids and the origins to store.

        The first ones have no id, because their front matter names ids that other memories have.
        """
        for match in self._matches:
            if match.draft.id is not None:
                self._take(match, match.draft.id)
        for rule in _UNCHANGED_RULES:
            self._assign(rule, _Match.allows)
        for match in self._matches:
            self._share_equal(match)
        unchanged_ids = set(self._taken_ids)
        for rule in _EDITED_RULES:
            self._assign(rule, self._may_rewrite)
        rewritten_ids = self._taken_ids - unchanged_ids
        self._give_new_ids()
        return self._drafts_with_origins(rewritten_ids)

    def moved(self) -> list[StaleMemory]:
        """Return the unmatched memories that have lost origins to drafts."""
        return [
            StaleMemory(document, remaining)
            for doc_id, document in self._stored.items()
            if doc_id not in self._taken_ids
            and (remaining := self._remaining(doc_id, document.origins)) != document.origins
        ]

    def stale(
        self, memories: Iterable[Document], matched_ids: AbstractSet[int], root: str
    ) -> list[StaleMemory]:
        """Return the memories from *root* whose files no longer contain them.

        Args:
            memories: All memories after the import.
            matched_ids: Ids of memories that the import has matched. They are returned only if they
                have other origins remaining.
        """
        stale: list[StaleMemory] = []
        for document in memories:
            origins = document.origins
            remaining = tuple(origin for origin in origins if not self._is_removed(origin))
            is_within = any(origin.is_within(root) for origin in origins)
            if is_within and remaining != origins and (remaining or document.id not in matched_ids):
                stale.append(StaleMemory(document, remaining))
        return stale

    def _is_removed(self, origin: Origin) -> bool:
        """Return True if the file of an origin no longer contains the memory."""
        if origin == STORED:
            return False
        if origin.file in self._files:
            return origin.versioned_place not in self._versions
        # If the folder around the root is missing, too, the file may be on another disk or machine.
        if not os.path.exists(Path(origin.root).parent):  # noqa: PTH110  - never raises
            return False
        try:
            os.lstat(origin.file)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (OSError, ValueError):  # a file in an unreadable folder counts as present
            return False
        return False

    def _assign(self, rule: _Rule, allows: Callable[[_Match, int], bool]) -> None:
        """Match drafts with memories that have a common key."""
        free: dict[Hashable, list[int]] = {}
        for doc_id in sorted(self._stored.keys() - self._taken_ids):
            document = self._stored[doc_id]
            for key in filter(None, (rule(origin, document) for origin in document.origins)):
                free.setdefault(key, []).append(doc_id)
        for match in self._matches:
            if match.id is None and (key := rule(match.draft.origin or STORED, match.draft)):
                candidates = (i for i in free.get(key, ()) if i not in self._taken_ids)
                best = next((i for i in candidates if allows(match, i)), None)
                if best is not None:
                    self._take(match, best)

    def _take(self, match: _Match, doc_id: int) -> None:
        match.id = doc_id
        self._taken_ids.add(doc_id)
        self._ids_by_text[_texts(match.draft)] = doc_id

    def _share_equal(self, match: _Match) -> bool:
        """Give a draft the memory of an equal draft; return True if it has an id now."""
        doc_id = self._ids_by_text.get(_texts(match.draft))
        if match.id is None and doc_id is not None and match.allows(doc_id):
            match.id = doc_id
        return match.id is not None

    def _may_rewrite(self, match: _Match, doc_id: int) -> bool:
        """Return True if only the draft's own place and removed origins contain the memory."""
        place = match.draft.origin and match.draft.origin.place
        return match.allows(doc_id) and all(
            origin.place == place or self._is_removed(origin)
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
                in_turn = (*match.allowed_ids[start:], *match.allowed_ids[:start])
                taken = self._stored.keys() | self._taken_ids
                free_id = next((doc_id for doc_id in in_turn if doc_id not in taken), None)
                if free_id is not None:
                    self._take(match, free_id)
        highest = max(self._stored, default=0)
        for match in self._matches:
            if not match.allowed_ids and not self._share_equal(match):
                highest = self._new_id(highest)
                while highest in self._taken_ids:
                    highest = self._new_id(highest)
                self._take(match, highest)
            highest = max(highest, match.id or 0)

    def _drafts_with_origins(self, rewritten_ids: AbstractSet[int]) -> list[Draft]:
        origins_by_id: dict[int, Origins] = {}
        matched = [(match.id, match.draft) for match in self._matches if match.id is not None]
        for doc_id, draft in matched:
            document = self._stored.get(doc_id)
            before = document.origins if document and doc_id not in rewritten_ids else ()
            origins = origins_by_id.get(doc_id, before)
            if draft.origin:
                self._ids_by_place.setdefault(draft.origin.place, set()).add(doc_id)
            for new in (draft.origin,) if draft.origin else draft.origins or (STORED,):
                origins = with_origin(origins, new)
            origins_by_id[doc_id] = origins
        # Of equal drafts, those with the id write the memory, or else the first that changes it.
        writer_ids = {draft.id for _, draft in matched}
        drafts = [match.draft for match in self._matches if match.id is None]
        for doc_id, draft in matched:
            parts = _parts_to_replace(draft, self._stored.get(doc_id))
            if draft.id is None and doc_id in writer_ids:
                parts = "origins"
            elif parts != "origins":
                writer_ids.add(doc_id)
            origins = self._remaining(doc_id, origins_by_id[doc_id])
            drafts.append(replace(draft, id=doc_id, origins=origins, replaces=parts))
        return drafts

    def _remaining(self, doc_id: int, origins: Origins) -> Origins:
        """Return the origins of a memory whose places no draft with another memory has.

        If no origin is left, return all of them without versions, so that a prune still knows the
        folder of the memory.
        """
        places = self._ids_by_place
        remaining = (item for item in origins if doc_id in places.get(item.place, {doc_id}))
        return tuple(remaining) or tuple(origin._replace(version="") for origin in origins)


def with_origin(origins: Origins, new: Origin) -> Origins:
    """Return origins with a new one, which replaces an origin of the same place."""
    before = next((origin for origin in origins if origin.place == new.place), None)
    if before is None:
        return (*origins, new)
    if PurePath(new.root).is_relative_to(before.root):
        # A single file that is imported again still belongs to the folder imported before.
        new = new._replace(root=before.root)
    return tuple(new if origin is before else origin for origin in origins)


def _parts_to_replace(draft: Draft, document: Document | None) -> ReplacedParts:
    """Return the parts of the memory that a draft replaces."""
    if draft.origin is None or document is None:
        return "stated"
    before = [origin for origin in document.origins if origin.place == draft.origin.place]
    if draft.origin.version in {origin.version for origin in before or document.origins}:
        # The file has not changed, but a tool may have changed the memory since.
        return "origins"
    return "all" if before or _texts(draft) != _texts(document) else "stated"


def _allowed_ids(origin: Origin | None) -> range | None:
    """Return the ids that `id: NUMBER` in the front matter allows; None without a number.

    A file with one memory gets the number as its id. The headings of a file share a thousand ids:
    7000 to 7999 for 7.
    """
    key = (origin and origin.key) or ""
    if not (origin and key.isascii() and key.isdecimal() and len(key) <= len(str(LARGEST_ID))):
        return None
    width = 1 if origin.heading is None else _IDS_OF_HEADINGS
    first = int(key) * width
    return range(first, first + width) if 1 <= first <= LARGEST_ID - width + 1 else None


def _texts(item: Document | Draft) -> Hashable:
    return item.title, item.content


def _renamed_heading(origin: Origin, item: Document | Draft) -> Hashable:
    body = item.content.strip()
    return body and origin.version and origin.heading is not None and (origin.file, body)


# A rule returns a key of an origin, or a false value. A memory and a draft with a common key match.
# An origin without a version is left of a memory whose place belongs to another memory now.
_UNCHANGED_RULES: Final[Sequence[_Rule]] = (
    lambda origin, _item: origin.version and origin.versioned_place,
    lambda _origin, item: _texts(item),
)
_EDITED_RULES: Final[Sequence[_Rule]] = (
    lambda origin, _item: origin.version and origin.key and (origin.key, origin.place),
    lambda origin, _item: origin.version and origin.key and (origin.root, *origin[2:4]),
    lambda origin, _item: origin.version and origin.place,
    _renamed_heading,
)
