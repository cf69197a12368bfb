"""The items that readers yield, and the report that counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from standards_mcp.commands import counted, printable
from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import Crosswalk

KEPT_PER_REASON: Final = 20
"""Number of problems of one reason that are listed; all are counted."""


class SourceError(CatalogError):
    """A document or an address cannot be read at all; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a document that was skipped or corrected.

    Attributes:
        reason: A short phrase that is the same for all problems of a kind; reports count by it.
        source: The name of the document.
        where: The line or the id inside the document.
        detail: More about this problem, such as a value or a hint.
        skipped: True if something was skipped, False if it was corrected.
        records: Number of skipped records, as far as it is known.
    """

    reason: str
    source: str
    where: str = ""
    detail: str = ""
    skipped: bool = True
    records: int = 0

    def __str__(self) -> str:
        """Return the problem on one line that a terminal can show."""
        place = f"{self.source}: {self.where}" if self.where else self.source
        text = f"{place}: {self.reason}" + (f" ({self.detail})" if self.detail else "")
        return printable(" ".join(text.split()).encode("utf-8", "replace").decode())


def note(reason: str, source: str, where: str = "", detail: str = "") -> Problem:
    """Return a problem that was corrected."""
    return Problem(reason=reason, source=source, where=where, detail=detail, skipped=False)


def lost(reason: str, source: str, where: str = "", detail: str = "", records: int = 1) -> Problem:
    """Return a problem for something skipped that had *records* records."""
    return Problem(reason=reason, source=source, where=where, detail=detail, records=records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One relation of a crosswalk, as a document states it.

    Attributes:
        source: The name of the document.
        where: The line in it.
        by_identifier: True if the ends are identifiers, which need not be loaded.
        adds: See `CrosswalkLinks`.
    """

    crosswalk: Crosswalk
    start: str
    relation: str
    end: str
    source: str
    where: str
    by_identifier: bool = False
    adds: bool = False


Item: TypeAlias = StandardRecord | Problem | Statement | Crosswalk
"""Items that readers yield.

A `Crosswalk` marks a document that contains all relations of this crosswalk, possibly none.
"""


@dataclass(kw_only=True)
class Report:
    """The counts of one import; the unit is records unless stated otherwise.

    ``read`` is always the sum of ``written``, ``unchanged``, ``collapsed``, ``filtered`` and
    ``skipped_records``.

    Attributes:
        documents: Documents with records or relations.
        read: Records in the documents, including skipped ones.
        new: Written for the first time.
        changed: Replaced a stored record with the same id.
        unchanged: Stored before with the same content; not touched.
        collapsed: Read more than once, in several sets or files, and written as one.
        filtered: Excluded by the filters.
        deleted: Deleted, because their set was replaced without them.
        left: Taken out of a replaced or removed set, and kept in other sets.
        crosswalk_rows: Rows of crosswalks.
        relations: Relations stated by crosswalks and by records of the documents.
        dry_run: True if nothing was written.
        skipped: Number of skipped things by reason; a whole document counts once.
        notes: Number of corrections by reason.
    """

    documents: int = 0
    read: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    collapsed: int = 0
    filtered: int = 0
    deleted: int = 0
    left: int = 0
    skipped_records: int = 0
    crosswalk_rows: int = 0
    relations: int = 0
    dry_run: bool = False
    skipped: Counter[str] = field(default_factory=Counter[str])
    notes: Counter[str] = field(default_factory=Counter[str])
    problems: list[Problem] = field(default_factory=list[Problem])
    _kept: Counter[str] = field(default_factory=Counter[str], init=False, repr=False)

    @property
    def written(self) -> int:
        """Records that were added or replaced."""
        return self.new + self.changed

    @property
    def has_effect(self) -> bool:
        """True if any record or relation was read without a problem, or anything is deleted."""
        return bool(self.read > self.skipped_records or self.deleted or self.left or self.relations)

    def add(self, problem: Problem) -> None:
        """Count *problem*, and list it if it is among the first of its reason."""
        counts = self.skipped if problem.skipped else self.notes
        counts[problem.reason] += max(problem.records, 1)
        self.read += problem.records
        self.skipped_records += problem.records
        if self._kept[problem.reason] < KEPT_PER_REASON:
            self._kept[problem.reason] += 1
            self.problems.append(problem)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        return {
            **counts,
            "written": self.written,
            "skipped": dict(self.skipped.most_common()),
            "notes": dict(self.notes.most_common()),
            "problems": [str(problem) for problem in self.problems],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report for people, one fact a line."""
        if not (self.read or self.relations) and len(self.problems) == 1:
            yield f"Nothing was read: {self.problems[0]}"
            return
        verb = "Would write" if self.dry_run else "Wrote"
        yield f"Read {counted(self.read, 'record')} in {counted(self.documents, 'document')}."
        if self.read or not self.crosswalk_rows:
            counts = f"{self.new:,} new, {self.changed:,} changed"
            yield f"{verb} {self.written:,} ({counts}); {self.unchanged:,} unchanged."
        if self.relations or self.crosswalk_rows:
            took = "Would take" if self.dry_run else "Took"
            yield f"{took} {counted(self.relations, 'relation')} between standards."
        deleted = "Would delete" if self.dry_run else "Deleted"
        for fact, count in (
            ("Repeated in several sets or files, and joined", self.collapsed),
            ("Left out by the filters", self.filtered),
            (f"{deleted} from the replaced sets", self.deleted),
            ("Taken out of the replaced sets, and kept in others", self.left),
        ):
            if count:
                yield f"{fact}: {count:,}."
        for title, reasons in (("Skipped", self.skipped), ("Noted", self.notes)):
            for reason, count in reasons.most_common():
                yield f"{title}: {reason}, {counted(count, 'time')}"
        yield from map(str, self.problems)
