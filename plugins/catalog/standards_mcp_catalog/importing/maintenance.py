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

    ``relations`` in the report counts the relations that crosswalks lose.
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

    def select() -> tuple[Sequence[StandardRecord], Sequence[str]]:
        loaded = store.fetch([record.id for record in starter_records()])
        return (), [each.id for each in loaded if each.text_status == "paraphrase"]

    return _remove(store, select, progress, dry_run=dry_run)


def _remove(
    store: LocalStore,
    select: Callable[[], tuple[Sequence[StandardRecord], Sequence[str]]],
    progress: Progress | None,
    *,
    dry_run: bool,
) -> Report:
    """Remove records; *select* returns the records to change and the ids of those to delete."""
    report, deleted_ids = Report(dry_run=dry_run), list[str]()

    def kept() -> Iterator[StandardRecord]:
        # The store runs this under its lock, unless with `dry_run`, and reads `deleted_ids`
        # afterwards. Records read earlier could have been replaced since, and would overwrite the
        # new ones.
        changed, deleted = select()
        deleted_ids.extend(deleted)
        report.deleted, report.left = len(deleted), len(changed)
        lost = store.database.relations.crosswalks(deleted)
        report.relations = sum(count for _, count in lost)
        yield from changed

    store.write(kept(), deleted_ids, progress, dry_run=dry_run)
    return report


def rename_sets(
    store: LocalStore,
    set_ids: Collection[str],
    fields: Mapping[str, str],
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> int:
    """Rename sets or their jurisdictions; later imports of the sets keep the names.

    Args:
        fields: One entry of `standards_mcp_catalog.sets.GivenNames`.

    Returns:
        The number of records that change.
    """
    names_by_set = dict.fromkeys(set_ids, fields)
    count = 0

    def changed() -> Iterator[StandardRecord]:
        # The store runs this under its lock, unless with `dry_run`. Records read earlier could have
        # been replaced since, and would overwrite the new ones.
        nonlocal count
        names_with_new = with_names(store.database.given_names(), names_by_set)
        for record in store.records(set_ids):
            after = renamed(record, names_with_new)
            if after.to_dict() != record.to_dict():
                count += 1
                yield after

    store.write(changed(), (), progress, names=names_by_set, dry_run=dry_run)
    return count


def remove_crosswalk(store: LocalStore, crosswalk_id: str, *, dry_run: bool = False) -> Report:
    """Delete a crosswalk; ``relations`` in the report counts its relations."""
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
