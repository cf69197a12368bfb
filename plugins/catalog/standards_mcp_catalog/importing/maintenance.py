"""Take data out of a store: to a file, or for good."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping

from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.sets import leaving_sets, renamed, with_names
from standards_mcp_catalog.starter import starter_records

from .formats.jsonl import relation_line
from .report import Report


def remove_sets(
    store: LocalStore,
    set_ids: Collection[str],
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> Report:
    """Delete sets; records that are also in other sets stay there.

    The report's ``relations`` are the relations that crosswalks lose.
    """
    report = Report(dry_run=dry_run)
    gone: list[str] = []

    def leaving() -> Iterator[StandardRecord]:
        # The store runs this under its lock, and reads `gone` afterwards.
        left, deleted = leaving_sets(store.records(set_ids), set_ids)
        gone.extend(deleted)
        report.deleted, report.left = len(deleted), len(left)
        report.relations = _relations_of(store, deleted)
        yield from left

    if dry_run:
        deque(leaving(), maxlen=0)
    else:
        store.write(leaving(), gone, progress)
    return report


def _relations_of(store: LocalStore, ids: Collection[str]) -> int:
    return sum(count for _, count in store.database.relations.crosswalks_of(ids))


def rename_sets(
    store: LocalStore,
    set_ids: Collection[str],
    names: Mapping[str, str],
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Give sets a name of their own, which later imports of them keep.

    Args:
        names: One entry of `standards_mcp_catalog.sets.GivenNames`.

    Returns:
        How many records change.
    """
    new = dict.fromkeys(set_ids, names)
    count = 0

    def changed() -> Iterator[StandardRecord]:
        # The store runs this under its lock.
        nonlocal count
        given = with_names(store.database.given_names(), new)
        for record in store.records(set_ids):
            # The store runs this under its lock, so that a rename does not bring back replaced
            # records.
            after = renamed(record, given)
            if after.to_dict() != record.to_dict():
                count += 1
                yield after

    if dry_run:
        deque(changed(), maxlen=0)
    else:
        store.write(changed(), (), progress, names=new)
    return count


def remove_starter(
    store: LocalStore, progress: Progress | None = None, *, dry_run: bool = False
) -> Report:
    """Delete what is left of the starter set: its standards that have no official text yet.

    Paraphrases of a user's own, under other ids, stay.
    """
    starter = [record.id for record in starter_records()]
    deleted = [each.id for each in store.fetch(starter) if each.text_status == "paraphrase"]
    relations = _relations_of(store, deleted)
    report = Report(deleted=len(deleted), relations=relations, dry_run=dry_run)
    if deleted and not dry_run:
        store.write((), deleted, progress)
    return report


def remove_crosswalk(store: LocalStore, crosswalk_id: str, *, dry_run: bool = False) -> Report:
    """Delete what a crosswalk states; the report's ``relations`` count it."""
    counts = {each.id: count for each, count in store.database.relations.crosswalks()}
    if not dry_run:
        store.remove_crosswalk(crosswalk_id)
    return Report(relations=counts.get(crosswalk_id, 0), dry_run=dry_run)


def export_lines(store: LocalStore, set_ids: Collection[str] | None = None) -> Iterator[str]:
    """Yield records as lines of JSON, then what crosswalks state of them.

    `formats.jsonl` reads both back unchanged.
    """
    # Without a selection, relations of standards that are not loaded are exported, too.
    ids: list[str] | None = None if set_ids is None else []
    for record in store.records(set_ids):
        if ids is not None:
            ids.append(record.id)
        yield record.model_dump_json(by_alias=True, exclude_none=True)
    for crosswalk, _ in store.database.relations.crosswalks():
        for link in store.database.relations.links(crosswalk.id, ids):
            yield relation_line(crosswalk, link)
