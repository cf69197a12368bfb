"""Bring public data into a store: read everything, then write once.

An import reads all its documents into a temporary file first. Nothing is written when reading
fails or when a strict import has skipped something. What then differs from the store is written
in one transaction: of an import that was killed all is there or nothing. It can simply be run
again, because downloads are kept by `sources.web` and embeddings by the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.errors import CatalogError
from standards_mcp.catalog.local.store import LocalStore
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.relations import Crosswalk
from standards_mcp.catalog.sets import GivenNames, renamed, with_names

from .changes import (
    Loss,
    changed_crosswalks,
    changed_records,
    find_loss,
    renamed_along,
    told_crosswalks,
)
from .naming import settle_jurisdiction, told_names
from .problems import Problem, note
from .report import Report
from .selection import Selection
from .staging import Staging
from .statements import Item, Statement, settle

Documents: TypeAlias = Iterable[Iterable[Item]]
"""For each document what is in it and what is wrong with it, see `readers`."""


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
            something had to be skipped loses nothing, and none does if a document could not be
            read at all.
        dry_run: Write nothing.
        strict: Raise `StrictImportError` when anything is skipped.
        jurisdiction: What the jurisdiction is called, whatever the source says; of a source with
            several, which of them to take. See `naming`.
    """

    selection: Selection = field(default_factory=Selection)
    replace: bool = False
    dry_run: bool = False
    strict: bool = False
    jurisdiction: str = ""


def import_sources(
    store: LocalStore,
    documents: Documents,
    options: ImportOptions | None = None,
    *,
    on_read: Callable[[Report], None] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Import *documents* into *store*. Ancestors of what the filters let through come along.

    Args:
        on_read: Is told the report so far after every document.
        progress: See `LocalStore.write`.

    Raises:
        StrictImportError: The import is strict, and something had to be skipped.
        JurisdictionNameError: See `naming.settle_jurisdiction`.
        CatalogError: The store cannot be read or written.
    """
    options = options or ImportOptions()
    report = Report(dry_run=options.dry_run)
    is_selected = _filter_of(options.selection)
    with Staging() as staging:
        for number, document in enumerate(documents):
            _read(document, number, staging, is_selected, report)
            if on_read is not None:
                on_read(report)
        names = _new_names(store, staging, options, report)
        staging.keep_ancestors()
        loss = find_loss(store, staging) if options.replace else Loss()
        for problem in settle(staging, store, loss.deleted):
            report.add(problem)
        report.relations = staging.links()
        if options.strict and report.skipped:
            raise StrictImportError(report)
        selected, distinct, others = staging.counts()
        report.collapsed += selected - distinct
        report.filtered += others
        _tell_loss(store, staging, loss, report)
        _write(store, staging, options, report, names, progress)
    return report


def _new_names(
    store: LocalStore, staging: Staging, options: ImportOptions, report: Report
) -> GivenNames:
    """Return what the sets that were read are called from now on, and tell what they are called."""
    names: GivenNames = {}
    notes: list[Problem] = []
    if options.jurisdiction and report.read > report.skipped_records:
        names, notes = settle_jurisdiction(store, staging, options.jurisdiction, report.skipped)
    before = store.given_names()
    if names:
        before = {id_: {"title": each["title"]} for id_, each in before.items() if "title" in each}
    for each in (*notes, *told_names(before, staging)):
        report.add(each)
    return names


def _filter_of(selection: Selection) -> Callable[[StandardRecord], bool]:
    has_jurisdiction, has_subject = cache(selection.has_jurisdiction), cache(selection.has_subject)

    def is_selected(record: StandardRecord) -> bool:
        return (
            has_jurisdiction(record.jurisdiction_id, record.jurisdiction_title)
            and has_subject(record.subject, record.normalized_subject or "")
            and selection.has_grade(record.education_levels)
        )

    return is_selected


def _read(
    document: Iterable[Item],
    number: int,
    staging: Staging,
    is_selected: Callable[[StandardRecord], bool],
    report: Report,
) -> None:
    before = report.read, report.crosswalk_rows
    for item in document:
        if isinstance(item, Problem):
            report.add(item)
            if item.skipped:
                # What cannot be read at all may hold records of any set.
                staging.mark_incomplete(number if item.records else None)
        elif isinstance(item, Statement):
            staging.add_statement(item)
            report.crosswalk_rows += 1
        elif isinstance(item, Crosswalk):
            staging.add_whole(item)
        else:
            report.read += 1
            place = staging.add(item, number, selected=is_selected(item))
            report.collapsed += place != "new"
            if place == "other":
                where = f"{item.statement_notation or 'no code'}, id {item.id}"
                detail = "the last was read"
                report.add(note("read twice, and differs", item.standard_set_title, where, detail))
    report.documents += (report.read, report.crosswalk_rows) > before


def _tell_loss(store: LocalStore, staging: Staging, loss: Loss, report: Report) -> None:
    for set_id in sorted(loss.incomplete):
        detail = "some of its records were skipped, so none was deleted"
        report.add(note("set not replaced", set_id, detail=detail))
    for each in told_crosswalks(store, staging, loss.deleted):
        report.add(each)


def _write(
    store: LocalStore,
    staging: Staging,
    options: ImportOptions,
    report: Report,
    names: GivenNames,
    progress: Progress | None,
) -> None:
    gone: list[str] = []

    def changes() -> Iterator[StandardRecord]:
        # The store runs this when nobody else writes, and asks for what is gone after it.
        given = with_names(store.given_names(), names)
        loss = find_loss(store, staging) if options.replace else Loss()
        report.deleted, report.left = len(loss.deleted), len(loss.leaving)
        gone.extend(sorted(loss.deleted))
        yield from changed_records(store, staging, loss, report, given)
        yield from (renamed(each, given) for each in loss.leaving)
        settled = {*loss.deleted, *(each.id for each in loss.leaving)}
        yield from renamed_along(store, staging, settled, report, names)

    if options.dry_run:
        deque(changes(), maxlen=0)  # `changes` counts while it is used up
        return
    store.write(changes(), gone, progress, changed_crosswalks(store, staging), names)
