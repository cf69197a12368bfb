"""Take data out of a store: to a file, or for good."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.local.store import LocalStore
from standards_mcp.catalog.sets import leaving_sets
from standards_mcp.catalog.starter import starter_records

from .report import Report


def remove_set(
    store: LocalStore, set_id: str, progress: Progress | None = None, *, dry_run: bool = False
) -> Report:
    """Delete the records of a set; those that are in other sets too only leave this one."""
    report = Report(dry_run=dry_run)
    leaving, deleted = leaving_sets(store.records([set_id]), [set_id])
    report.deleted, report.left = len(deleted), len(leaving)
    if not dry_run and (leaving or deleted):
        store.write(leaving, deleted, progress)
    return report


def remove_starter(
    store: LocalStore, progress: Progress | None = None, *, dry_run: bool = False
) -> Report:
    """Delete what is left of the starter set: its standards that have no official text yet.

    Paraphrases of a user's own, under other ids, stay.
    """
    starter = [record.id for record in starter_records()]
    deleted = [each.id for each in store.fetch(starter) if each.text_status == "paraphrase"]
    if deleted and not dry_run:
        store.write((), deleted, progress)
    return Report(deleted=len(deleted), dry_run=dry_run)


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
