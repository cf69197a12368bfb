"""Take data out of a store: to a file, or for good."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.local.store import LocalStore
from standards_mcp.catalog.sets import leaving_sets, renamed
from standards_mcp.catalog.starter import starter_records

from .report import Report


def remove_sets(
    store: LocalStore,
    set_ids: Collection[str],
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> Report:
    """Delete the records of sets; those that are in other sets too only leave these.

    The report's ``relations`` are those that crosswalks lose with them.
    """
    report = Report(dry_run=dry_run)
    leaving, deleted = leaving_sets(store.records(set_ids), set_ids)
    report.deleted, report.left = len(deleted), len(leaving)
    report.relations = _relations_of(store, deleted)
    given = store.given_names()
    if not dry_run and (leaving or deleted):
        store.write(leaving, deleted, progress)
        if not given.keys().isdisjoint(set_ids):
            # A set that comes back is called as its source calls it.
            kept = {id_: names for id_, names in given.items() if id_ not in set_ids}
            store.save_given_names(kept)
    return report


def _relations_of(store: LocalStore, ids: Collection[str]) -> int:
    return sum(count for _, count in store.crosswalks_of(ids))


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
        names: Those of `standards_mcp.catalog.sets.GivenNames`.

    Returns:
        How many records change.
    """
    before = store.given_names()
    given = {**before, **{id_: {**before.get(id_, {}), **names} for id_ in set_ids}}
    records = ((record, renamed(record, given)) for record in store.records(set_ids))
    changed = [after for record, after in records if after.to_dict() != record.to_dict()]
    if changed and not dry_run:
        # What is remembered first can be done again by whoever is interrupted in between.
        store.save_given_names(given)
        store.write(changed, (), progress)
    return len(changed)


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
    counts = {each.id: count for each, count in store.crosswalks()}
    if not dry_run:
        store.remove_crosswalk(crosswalk_id)
    return Report(relations=counts.get(crosswalk_id, 0), dry_run=dry_run)


def export_lines(store: LocalStore, set_ids: Collection[str] | None = None) -> Iterator[str]:
    """Yield records as lines of JSON, which `formats.jsonl` reads back unchanged."""
    for record in store.records(set_ids):
        yield record.model_dump_json(by_alias=True, exclude_none=True)
