"""``standards-mcp data remove``."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from standards_mcp.commands import Report, ask, counted, divert_stdout, examples, offer, reports

from .importing import STARTER
from .names import crosswalk_named, jurisdiction_option, one_or_all, sets_called
from .workplace import ProgressLine, Workplace, loaded_sets_and_crosswalks

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.report import Report as Counts
    from standards_mcp_catalog.local.store import LocalStore


class _Removal(NamedTuple):
    """A removal, and hints for the user.

    Attributes:
        run: Removes the data; with ``dry_run=True`` only counts it. ``relations`` in its report
            counts relations of crosswalks.
        before: Says how to keep a copy.
        after: Says how to restore the data.
    """

    run: Callable[..., Counts]
    before: str
    after: str


@click.command(
    epilog=examples(
        "data remove starter",
        "data remove --jurisdiction Ohio",
        "data remove --dry-run 'Grade 3 Mathematics'",
        "data remove crosswalk.csv --yes",
    )
)
@click.argument(
    "standard_set", metavar="[SET]", default="", shell_complete=offer(loaded_sets_and_crosswalks)
)
@jurisdiction_option
@click.option("--crosswalk", is_flag=True, help="SET is a crosswalk, also if a set is called so.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Delete without asking, as scripts have to.")
@click.pass_obj
@reports
def remove(workplace: Workplace, /, *, dry_run: bool, yes: bool, **chosen: Any) -> Report:
    """Delete the standard SET, given by its id or title; `starter` means the whole starter set.

    It counts what would be deleted, and asks first. With --jurisdiction and no SET, all sets of
    that are deleted. Standards that are in other sets too stay in those. What crosswalks say of
    deleted standards goes with them. SET may also be a crosswalk, see `data crosswalks`; if a set
    is called so too, add --crosswalk. Exit code 1 when there is no such set or crosswalk, or when
    nothing is deleted because nobody has agreed.
    """
    with divert_stdout(), ProgressLine() as progress:
        store = workplace.embedded.store
        removal = _removal(store, progress, **chosen)
        report = removal.run(dry_run=True)
        if not (dry_run or yes) and _has_effect(report):
            ask(f"{_sentence(report)} {removal.before}")
        if not dry_run:
            report = removal.run(dry_run=False)
    names = ("deleted", "left", "relations", "dry_run")
    hint = removal.before if dry_run else removal.after
    text = f"{_sentence(report)} {hint}" if _has_effect(report) else _sentence(report)
    return Report({name: getattr(report, name) for name in names}, lambda: text)


def _has_effect(report: Counts) -> bool:
    return bool(report.deleted or report.left or report.relations)


def _sentence(report: Counts) -> str:
    verb = "Would delete" if report.dry_run else "Deleted"
    parts = [counted(report.deleted, "record")] if report.deleted or not report.relations else []
    parts += [counted(report.relations, "relation")] if report.relations else []
    stay = f"{report.left:,} {'stays' if report.left == 1 else 'stay'} in other sets"
    kept = f"; {stay}" if report.deleted or not report.relations else ""
    return f"{verb} {' and '.join(parts)}{kept}."


def _removal(
    store: LocalStore,
    progress: ProgressLine,
    *,
    standard_set: str,
    jurisdiction: str | None,
    crosswalk: bool,
) -> _Removal:
    """Return the removal of a set, a jurisdiction, the starter set or a crosswalk."""
    from standards_mcp_catalog.importing.maintenance import (
        remove_crosswalk,
        remove_sets,
        remove_starter,
    )

    if crosswalk and (jurisdiction or not standard_set):
        raise click.UsageError("--crosswalk goes with the id or title of one, and without others")
    if standard_set == STARTER and not (crosswalk or jurisdiction):
        hint = "`standards-mcp data import starter` brings it back."
        return _Removal(partial(remove_starter, store, progress), hint, hint)
    crosswalk_id = crosswalk_named(store, standard_set) if standard_set and not jurisdiction else ""
    if crosswalk and not crosswalk_id:
        raise click.ClickException(
            f"no crosswalk {standard_set!r}; `standards-mcp data crosswalks` lists them"
        )
    if crosswalk_id:
        if not crosswalk and sets_called(standard_set, store.sets()):
            raise click.UsageError(
                f"{standard_set!r} is a set, and a crosswalk with the id {crosswalk_id}; add "
                "--crosswalk for the crosswalk, or --jurisdiction for the set"
            )
        return _Removal(
            partial(remove_crosswalk, store, crosswalk_id),
            _copy_first("data export --output FILE"),
            _restored_from("file"),
        )
    ids = one_or_all(store, standard_set, jurisdiction)
    chosen = ["--set", ids[0]] if standard_set else ["--jurisdiction", jurisdiction or ""]
    return _Removal(
        partial(remove_sets, store, ids, progress),
        _copy_first(f"data export {shlex.join(chosen)} --output FILE"),
        _restored_from("source"),
    )


def _copy_first(command: str) -> str:
    return (
        f"To keep a copy, run `standards-mcp {command}` first; `standards-mcp data import FILE` "
        "brings it back."
    )


def _restored_from(origin: str) -> str:
    return f"To get this back, import its {origin} or an export with `standards-mcp data import`."
