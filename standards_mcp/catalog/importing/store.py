"""What bringing data in and out needs of a store, and no more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.sets import StandardSet


@runtime_checkable
class RecordStore(Protocol):
    """What an import needs of a store. Every method may raise `CatalogError`."""

    def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids; unknown ids are left out."""
        ...

    def sets(self) -> list[StandardSet]:
        """Return every standard set, in the order of jurisdiction, subject and title."""
        ...

    def records(self, set_ids: Collection[str] | None = None) -> Iterator[StandardRecord]:
        """Yield the records of these sets, of all by default, in the order of their ids.

        A record belongs to its ``standard_set_id`` and to each of its ``also_in_set_ids``.
        """
        ...

    def write(
        self,
        records: Iterable[StandardRecord],
        deleted: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> int:
        """Add or replace *records*, delete the ids *deleted*, and make all of it searchable.

        Both are consumed inside one transaction: what they raise undoes it. While it runs, the
        other methods answer with what was there before. Another process that writes is waited
        for. *progress* is told about texts being embedded.

        Returns:
            How many records were new, differed or were deleted.
        """
        ...
