"""Bring public data into a store: read everything, then write once.

An import reads all its documents into a temporary file first. Nothing is written when reading
fails or when a strict import has skipped something. What then differs from the store is written
in one transaction: of an import that was killed all is there or nothing. It can simply be run
again, because downloads are kept by `sources.web` and embeddings by the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Final, TypeAlias

from standards_mcp._utils.chunks import chunks
from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.errors import CatalogError
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.sets import merged_with_stored, without_sets

from .problems import Problem, note
from .report import Report
from .selection import Selection
from .staging import Staging
from .store import RecordStore

_AT_ONCE: Final = 500  # records in memory
Documents: TypeAlias = Iterable[Iterable[StandardRecord | Problem]]
"""For each document the records in it and what is wrong with it, see `sources.readers`."""


class StrictImportError(CatalogError):
    """A strict import skipped something, and wrote nothing.

    Attributes:
        report: What was read.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        reasons = ", ".join(f"{count} x {reason}" for reason, count in report.skipped.items())
        super().__init__(
            f"nothing was imported, because something had to be skipped: {reasons}; correct the "
            "source, or import without --strict"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What to import, and how.

    Attributes:
        selection: What to take of it.
        replace: Delete the records that are gone from the sets which were read. A set of which
            something had to be skipped loses nothing.
        dry_run: Write nothing.
        strict: Raise `StrictImportError` when anything is skipped.
    """

    selection: Selection = field(default_factory=Selection)
    replace: bool = False
    dry_run: bool = False
    strict: bool = False


def import_sources(
    store: RecordStore,
    documents: Documents,
    options: ImportOptions | None = None,
    *,
    on_read: Callable[[Report], None] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Import *documents* into *store*. Ancestors of what the filters let through come along.

    Args:
        on_read: Is told the report so far after every document.
        progress: See `RecordStore.write`.

    Raises:
        StrictImportError: The import is strict, and something had to be skipped.
        CatalogError: The store cannot be read or written.
    """
    options = options or ImportOptions()
    report = Report(dry_run=options.dry_run)
    is_selected = record_filter(options.selection)
    with Staging() as staging:
        for number, document in enumerate(documents):
            _read(document, number, staging, is_selected, report)
            if on_read is not None:
                on_read(report)
        if options.strict and report.skipped:
            raise StrictImportError(report)
        staging.keep_ancestors()
        selected, distinct, others = staging.counts()
        report.collapsed += selected - distinct
        report.filtered += others
        _write(store, staging, options, report, progress)
    return report


def record_filter(selection: Selection) -> Callable[[StandardRecord], bool]:
    """Return a function that says whether a record is selected."""
    has_jurisdiction, has_subject = cache(selection.has_jurisdiction), cache(selection.has_subject)

    def is_selected(record: StandardRecord) -> bool:
        return (
            has_jurisdiction(record.jurisdiction_id, record.jurisdiction_title)
            and has_subject(record.subject, record.normalized_subject or "")
            and selection.has_grade(record.education_levels)
        )

    return is_selected


def _read(
    document: Iterable[StandardRecord | Problem],
    number: int,
    staging: Staging,
    is_selected: Callable[[StandardRecord], bool],
    report: Report,
) -> None:
    before = report.read
    for item in document:
        if isinstance(item, Problem):
            report.add(item)
            if item.skipped:
                staging.mark_incomplete(number)
        else:
            report.read += 1
            place = staging.add(item, number, selected=is_selected(item))
            report.collapsed += place != "new"
            if place == "other":
                where = f"{item.statement_notation or 'no code'}, id {item.id}"
                detail = "the last was read"
                report.add(note("read twice, and differs", item.standard_set_title, where, detail))
    report.documents += report.read > before


def _write(
    store: RecordStore,
    staging: Staging,
    options: ImportOptions,
    report: Report,
    progress: Progress | None,
) -> None:
    replaced, incomplete = staging.complete_sets() if options.replace else (set[str](), set[str]())
    for set_id in sorted(incomplete):
        detail = "some of its records were skipped, so none was deleted"
        report.add(note("set not replaced", set_id, detail=detail))
    leaving, deleted = _gone(store, staging, replaced)
    report.deleted, report.left = len(deleted), len(leaving)
    changes = _changes(store, staging, replaced, frozenset(deleted), report)
    if options.dry_run:
        deque(changes, maxlen=0)  # `changes` counts while it is used up
        return
    store.write(chain(changes, leaving.values()), deleted, progress)


def _gone(
    store: RecordStore, staging: Staging, replaced: Collection[str]
) -> tuple[dict[str, StandardRecord], list[str]]:
    """Return the stored records that leave some of their sets, and the ids of those that go."""
    leaving: dict[str, StandardRecord] = {}
    deleted: list[str] = []
    for record in store.records(replaced) if replaced else ():
        if staging.sets_of(record.id):
            continue  # it was read, so `_changes` settles its sets
        left = without_sets(record, replaced)
        if left is None:
            deleted.append(record.id)
        else:
            leaving[record.id] = left
    return leaving, deleted


def _changes(
    store: RecordStore,
    staging: Staging,
    replaced: Collection[str],
    deleted: Collection[str],
    report: Report,
) -> Iterator[StandardRecord]:
    """Yield what differs from the store, and count."""
    for chunk in chunks(staging.records(), _AT_ONCE):
        stored = {record.id: record for record in store.fetch([record.id for record in chunk])}
        for read in chunk:
            known = stored.get(read.id)
            record = read if known is None else merged_with_stored(read, known, replaced)
            record = _without_children(record, deleted)
            if known is None:
                report.new += 1
            elif record.to_dict() != known.to_dict():
                report.changed += 1
            else:
                report.unchanged += 1
                continue
            yield record


def _without_children(record: StandardRecord, deleted: Collection[str]) -> StandardRecord:
    left = tuple(id_ for id_ in record.child_ids if id_ not in deleted)
    if len(left) == len(record.child_ids):
        return record
    return record.model_copy(update={"child_ids": left, "is_leaf": not left})
