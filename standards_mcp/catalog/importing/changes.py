"""What an import changes in a store, and what it takes away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from standards_mcp._utils.chunks import chunks
from standards_mcp._utils.text import counted
from standards_mcp.catalog.local.store import LocalStore
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.relations import CrosswalkLinks
from standards_mcp.catalog.sets import GivenNames, leaving_sets, merged_with_stored, renamed

from .problems import Problem, note
from .report import Report
from .staging import Staging

_AT_ONCE: Final = 500  # records in memory


class Loss(NamedTuple):
    """What an import that replaces takes away.

    Attributes:
        replaced: The sets that were read whole.
        incomplete: Those of which something was skipped, so that they lose nothing.
        leaving: Records that only leave the replaced sets, as they are then.
        deleted: The ids of records that are in no set any more.
    """

    replaced: Collection[str] = ()
    incomplete: Collection[str] = ()
    leaving: Sequence[StandardRecord] = ()
    deleted: frozenset[str] = frozenset()


def find_loss(store: LocalStore, staging: Staging) -> Loss:
    """Return what goes when the sets that were read are replaced."""
    replaced, incomplete = staging.complete_sets()
    # Of a record that was read, `changed_records` settles the sets.
    others = (each for each in store.records(replaced) if not staging.sets_of(each.id))
    leaving, deleted = leaving_sets(others, replaced)
    return Loss(replaced, incomplete, leaving, frozenset(deleted))


def changed_records(
    store: LocalStore,
    staging: Staging,
    loss: Loss,
    report: Report,
    given: GivenNames,
) -> Iterator[StandardRecord]:
    """Yield what differs from the store, and count. A dry run leaves out what is new."""
    for ids in chunks(staging.ids(), _AT_ONCE):
        stored = {record.id: record for record in store.fetch(ids)}
        if report.dry_run:
            report.new += len(ids) - len(stored)
        for source in staging.fetch(stored if report.dry_run else ids):
            read = renamed(source, given)
            known = stored.get(read.id)
            record = read if known is None else merged_with_stored(read, known, loss.replaced)
            record = _without_children(record, loss.deleted)
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


def renamed_along(
    store: LocalStore,
    staging: Staging,
    settled: Collection[str],
    report: Report,
    names: GivenNames,
) -> Iterator[StandardRecord]:
    """Yield what else the store has of sets that get a new name, under that name, and tell it."""
    count = 0
    for record in store.records(names) if names else ():
        after = renamed(record, names)
        if after is record or record.id in settled or staging.is_selected(record.id):
            continue
        if after.to_dict() != record.to_dict():
            count += 1
            yield after
    if count:
        told = f"{counted(count, 'stored record')} of the same sets"
        report.add(note("renamed with the rest of its set", "catalog", detail=told))


def changed_crosswalks(store: LocalStore, staging: Staging) -> Iterator[CrosswalkLinks]:
    """Yield what crosswalks state now, and those of packages that no longer state anything."""
    yield from staging.crosswalks()
    silent = staging.silent_crosswalks()
    for crosswalk, _ in store.crosswalks():
        if crosswalk.id in silent:
            yield CrosswalkLinks(crosswalk, ())


def told_crosswalks(
    store: LocalStore, staging: Staging, deleted: Iterable[str]
) -> Iterator[Problem]:
    """Yield what the import takes from crosswalks that are loaded."""
    before = {crosswalk.id: (crosswalk.title, count) for crosswalk, count in store.crosswalks()}
    now = dict.fromkeys(staging.silent_crosswalks(), 0)
    now |= {each.crosswalk.id: len([*each.links]) for each in staging.crosswalks() if not each.adds}
    for id_, (title, count) in before.items():
        if id_ not in now:
            continue
        detail = f"{counted(count, 'relation')} before, {now[id_]:,} now"
        yield note("crosswalk replaced", title, detail=detail)
    for crosswalk, count in store.crosswalks_of(deleted):
        if crosswalk.id not in now:
            detail = f"{count:,}, with their standards"
            yield note("relations of a crosswalk deleted", crosswalk.title, detail=detail)
