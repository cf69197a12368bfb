"""What bringing data in and out needs of a store, and no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from .records import StandardRecord

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


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

    def to_dict(self) -> dict[str, Any]:
        """Return the set as JSON-ready data."""
        names = (
            "id", "title", "subject", "jurisdiction_id", "jurisdiction_title", "license",
            "source_url", "records",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


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
