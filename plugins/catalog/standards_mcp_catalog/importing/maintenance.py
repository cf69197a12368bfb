"""Remove, rename and export the standards of a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.sets import remove_from_sets, renamed, with_names
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
    return _remove(
        store,
        lambda: remove_from_sets(store.records(set_ids), set_ids),
        progress,
        dry_run=dry_run,
    )


def remove_starter(
    store: LocalStore, progress: Progress | None = None, *, dry_run: bool = False
) -> Report:
    """Delete the standards of the starter set that have no official text yet.

    Paraphrases that users imported under other ids stay.
    """

    def split() -> tuple[Sequence[StandardRecord], Sequence[str]]:
        loaded = store.fetch([record.id for record in starter_records()])
        return (), [each.id for each in loaded if each.text_status == "paraphrase"]

    return _remove(store, split, progress, dry_run=dry_run)


def _remove(
    store: LocalStore,
    split: Callable[[], tuple[Sequence[StandardRecord], Sequence[str]]],
    progress: Progress | None,
    *,
    dry_run: bool,
) -> Report:
    """Remove records; *split* returns the records to change and the ids of those to delete."""
    report, deleted_ids = Report(dry_run=dry_run), list[str]()

    def leaving() -> Iterator[StandardRecord]:
        # The store iterates under its lock, and reads `deleted_ids` afterwards.
        left, deleted = split()
        deleted_ids.extend(deleted)
        report.deleted, report.left = len(deleted), len(left)
        lost = store.database.relations.crosswalks(deleted)
        report.relations = sum(count for _, count in lost)
        yield from left

    store.write(leaving(), deleted_ids, progress, dry_run=dry_run)
    return report


def rename_sets(
    store: LocalStore,
    set_ids: Collection[str],
    names: Mapping[str, str],
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Rename sets or their jurisdictions; later imports of the sets keep the names.

    Args:
        names: One entry of `standards_mcp_catalog.sets.GivenNames`.

    Returns:
        The number of records that change.
    """
    new_names = dict.fromkeys(set_ids, names)
    count = 0

    def changed() -> Iterator[StandardRecord]:
        # The store iterates under its lock, so that a rename does not bring back replaced records.
        nonlocal count
        all_names = with_names(store.database.given_names(), new_names)
        for record in store.records(set_ids):
            after = renamed(record, all_names)
            if after.to_dict() != record.to_dict():
                count += 1
                yield after

    store.write(changed(), (), progress, names=new_names, dry_run=dry_run)
    return count


def remove_crosswalk(store: LocalStore, crosswalk_id: str, *, dry_run: bool = False) -> Report:
    """Delete a crosswalk; the report's ``relations`` is the number of its relations."""
    counts = {each.id: count for each, count in store.database.relations.crosswalks()}
    if not dry_run:
        store.remove_crosswalk(crosswalk_id)
    return Report(relations=counts.get(crosswalk_id, 0), dry_run=dry_run)


def export_lines(store: LocalStore, set_ids: Collection[str] | None = None) -> Iterator[str]:
    """Yield records as lines of JSON, then the relations that crosswalks state for them.

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
