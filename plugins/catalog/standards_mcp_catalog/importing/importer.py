"""Import documents into a store: read everything, then write once.

Documents are first read into a temporary database, see `staging`. Nothing is written if reading
raises an error, or if a strict import has skipped something. The differences from the store are
then written in one transaction, so an import that is killed has written all of them or none. To
repeat it is cheap: `web` caches downloads, and the store keeps embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from standards_mcp.commands import counted
from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord, chunks
from standards_mcp_catalog.relations import Crosswalk
from standards_mcp_catalog.sets import (
    GivenNames,
    merged_with_stored,
    remove_from_sets,
    renamed,
    with_names,
)

from .report import Item, Problem, Report, Statement, note
from .selection import Selection, notes_on_names, settle_jurisdiction
from .staging import Staging, resolve_statements

Documents: TypeAlias = Iterable[Iterable[Item]]
"""The items of each document, see `readers`."""
_BATCH: Final = 500  # records in memory
_SHORT: Final = 1000
"""A first import of up to so many records is indexed together with the seed.

A longer one waits until the seed has an index, so that other processes can search the seed.
"""


class StrictImportError(CatalogError):
    """A strict import skipped something, and wrote nothing.

    Attributes:
        report: The counts up to the error.
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
    """Options of an import.

    Attributes:
        selection: Filters.
        replace: For each set in the documents, delete stored records that the documents no longer
            contain. Nothing is deleted from a set with skipped records, or from any set if a
            document was unreadable.
        dry_run: Write nothing.
        strict: Raise `StrictImportError` when anything is skipped.
        jurisdiction: If the documents have one jurisdiction, its new name. If they have several,
            the name of the one to import. See `selection.settle_jurisdiction`.
    """

    selection: Selection = field(default_factory=Selection)
    replace: bool = False
    dry_run: bool = False
    strict: bool = False
    jurisdiction: str = ""


class _Loss(NamedTuple):
    """Records that an import removes from the sets that it replaces.

    Attributes:
        replaced: Ids of the complete sets.
        incomplete: Ids of the sets with skipped records, which lose nothing.
        detached: Records that leave a replaced set but belong to other sets; the replaced sets are
            already removed from them.
        deleted: Ids of the records that are in no other set.
    """

    replaced: Collection[str] = ()
    incomplete: Collection[str] = ()
    detached: Sequence[StandardRecord] = ()
    deleted: frozenset[str] = frozenset()


def import_sources(
    store: LocalStore,
    documents: Documents,
    options: ImportOptions | None = None,
    *,
    on_read: Callable[[Report], None] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Import *documents* into *store*, with the ancestors of the selected records.

    Args:
        on_read: Called with the report so far after every document and every 500 records.
        progress: See `LocalStore.write`.

    Raises:
        StrictImportError: The import is strict, and something had to be skipped.
        JurisdictionNameError: See `selection.settle_jurisdiction`.
        CatalogError: The store cannot be read or written.
    """
    with Staging() as staging:
        import_ = _Import(store, staging, options or ImportOptions(), on_read)
        for number, document in enumerate(documents):
            import_.read(document, number)
        is_short = import_.report.read <= _SHORT
        with store.filling_without_index() if is_short else nullcontext():
            names = import_.finish_staging()
            import_.write(names, progress)
        return import_.report


class _Import:
    """One import: `read` each document, then `finish_staging`, then `write` the changes."""

    def __init__(
        self,
        store: LocalStore,
        staging: Staging,
        options: ImportOptions,
        on_read: Callable[[Report], None] | None,
    ) -> None:
        self._store, self._staging, self._options = store, staging, options
        self._on_read = on_read
        self._is_selected = _record_filter(options.selection)
        self.report = Report(dry_run=options.dry_run)

    def read(self, document: Iterable[Item], number: int) -> None:
        """Stage the items of a document, and count them."""
        report, staging = self.report, self._staging
        before = report.read, report.crosswalk_rows
        for item in document:
            if isinstance(item, Problem):
                report.add(item)
                if item.skipped:
                    # A document that cannot be read at all may hold records of any set.
                    staging.mark_incomplete(number if item.records else None)
            elif isinstance(item, Statement):
                staging.add_statement(item)
                report.crosswalk_rows += 1
            elif isinstance(item, Crosswalk):
                staging.add_crosswalk(item)
            else:
                self._read_record(item, number)
        report.documents += (report.read, report.crosswalk_rows) > before
        if self._on_read:
            self._on_read(report)

    def _read_record(self, record: StandardRecord, number: int) -> None:
        self.report.read += 1
        if self._on_read and self.report.read % _BATCH == 0:
            self._on_read(self.report)
        state = self._staging.add(record, number, selected=self._is_selected(record))
        self.report.collapsed += state != "new"
        if state == "other":
            where = f"{record.statement_notation or 'no code'}, id {record.id}"
            reason, detail = "read twice, and differs", "the last one counts"
            self.report.add(note(reason, record.standard_set_title, where, detail))

    def finish_staging(self) -> GivenNames:
        """Finish staging, and return the new names of sets.

        Apply the jurisdiction option, select ancestors, resolve crosswalk statements, check
        `strict`.

        Raises:
            StrictImportError: The import is strict, and something had to be skipped.
            JurisdictionNameError: See `selection.settle_jurisdiction`.
        """
        report, staging = self.report, self._staging
        names = self._new_names()
        staging.select_ancestors()
        loss = self._loss()
        for problem in resolve_statements(staging, self._store, loss.deleted):
            report.add(problem)
        report.relations = staging.count_links()
        if self._options.strict and report.skipped:
            raise StrictImportError(report)
        selected, distinct, unselected = staging.counts()
        report.collapsed += selected - distinct
        report.filtered += unselected
        for set_id in sorted(loss.incomplete):
            detail = "some of its records were skipped, so none was deleted"
            report.add(note("set not replaced", set_id, detail=detail))
        for problem in self._changes_of_crosswalks(loss.deleted):
            report.add(problem)
        return names

    def _new_names(self) -> GivenNames:
        names: GivenNames = {}
        notes: list[Problem] = []
        name, report = self._options.jurisdiction, self.report
        if name and report.read > report.skipped_records:
            names, notes = settle_jurisdiction(self._store, self._staging, name)
        earlier = self._store.database.given_names()
        if names:
            # The new jurisdiction name overrides earlier jurisdiction names; earlier set titles
            # stay in force.
            titles = {id_: each["title"] for id_, each in earlier.items() if "title" in each}
            earlier = {id_: {"title": title} for id_, title in titles.items()}
        for each in (*notes, *notes_on_names(earlier, self._staging)):
            report.add(each)
        return names

    def _loss(self) -> _Loss:
        """Find the stored records to remove from the replaced sets."""
        if not self._options.replace:
            return _Loss()
        replaced, incomplete = self._staging.complete_sets()
        records = self._store.records(replaced)
        # Skip records that were read: `_changed_records` updates their sets.
        unread = (each for each in records if not self._staging.sets_of(each.id))
        detached, deleted = remove_from_sets(unread, replaced)
        return _Loss(replaced, incomplete, detached, frozenset(deleted))

    def _changes_of_crosswalks(self, deleted: Iterable[str]) -> Iterator[Problem]:
        """Yield a note for each crosswalk in the store that loses or replaces relations."""
        relations = self._store.database.relations
        stored = {each.id: (each.title, count) for each, count in relations.crosswalks()}
        staged = self._staging.crosswalks()
        new_counts = {each.crosswalk.id: len([*each.links]) for each in staged if not each.adds}
        for id_, (title, count) in stored.items():
            if id_ in new_counts:
                detail = f"{counted(count, 'relation')} before, {new_counts[id_]:,} now"
                yield note("crosswalk replaced", title, detail=detail)
        for crosswalk, count in relations.crosswalks(deleted):
            if crosswalk.id not in new_counts:
                detail = f"{count:,}, with their standards"
                yield note("relations of a crosswalk deleted", crosswalk.title, detail=detail)

    def write(self, names: GivenNames, progress: Progress | None) -> None:
        """Write the differences from the store in one transaction, or only count them."""
        deleted_ids, crosswalks = list[str](), self._staging.crosswalks()
        changes = self._changes(names, deleted_ids)  # the iteration counts them
        self._store.write(
            changes, deleted_ids, progress, crosswalks, names, dry_run=self._options.dry_run
        )

    def _changes(self, names: GivenNames, deleted_ids: list[str]) -> Iterator[StandardRecord]:
        """Fill *deleted_ids*, then yield the records to write."""
        # Compute deletions lazily: the store runs this generator under its lock and reads
        # *deleted_ids* when it is exhausted.
        all_names = with_names(self._store.database.given_names(), names)
        loss = self._loss()
        self.report.deleted, self.report.left = len(loss.deleted), len(loss.detached)
        deleted_ids.extend(sorted(loss.deleted))
        yield from self._changed_records(loss, all_names)
        yield from (renamed(each, all_names) for each in loss.detached)
        lost_ids = {*loss.deleted, *(each.id for each in loss.detached)}
        yield from self._renamed_others(lost_ids, names)

    def _changed_records(self, loss: _Loss, names: GivenNames) -> Iterator[StandardRecord]:
        """Yield and count the records that differ from the store.

        In a dry run, new records are counted but not yielded.
        """
        report = self.report
        for ids in chunks(self._staging.ids(), _BATCH):
            stored = {record.id: record for record in self._store.fetch(ids)}
            if report.dry_run:
                report.new += len(ids) - len(stored)
            for source in self._staging.fetch(stored if report.dry_run else ids):
                read = renamed(source, names)
                old = stored.get(read.id)
                record = read if old is None else merged_with_stored(read, old, loss.replaced)
                record = _without_deleted_children(record, loss.deleted)
                if old is None:
                    report.new += 1
                elif record.to_dict() != old.to_dict():
                    report.changed += 1
                else:
                    report.unchanged += 1
                    continue
                yield record

    def _renamed_others(
        self, lost_ids: Collection[str], names: GivenNames
    ) -> Iterator[StandardRecord]:
        """Yield the records of renamed sets that were neither read nor lost, with the new names."""
        count = 0
        for record in self._store.records(names) if names else ():
            after = renamed(record, names)
            if after is record or record.id in lost_ids or self._staging.is_selected(record.id):
                continue
            if after.to_dict() != record.to_dict():
                count += 1
                yield after
        if count:
            detail = f"{counted(count, 'stored record')} of the same sets"
            self.report.add(note("renamed with the rest of its set", "catalog", detail=detail))


def _record_filter(selection: Selection) -> Callable[[StandardRecord], bool]:
    has_jurisdiction, has_subject = cache(selection.has_jurisdiction), cache(selection.has_subject)

    def is_selected(record: StandardRecord) -> bool:
        return (
            has_jurisdiction(record.jurisdiction_id, record.jurisdiction_title)
            and has_subject(record.subject, record.normalized_subject or "")
            and selection.has_grade(record.education_levels)
        )

    return is_selected


def _without_deleted_children(record: StandardRecord, deleted: Collection[str]) -> StandardRecord:
    kept = tuple(id_ for id_ in record.child_ids if id_ not in deleted)
    if len(kept) == len(record.child_ids):
        return record
    return record.model_copy(update={"child_ids": kept, "is_leaf": not kept})
