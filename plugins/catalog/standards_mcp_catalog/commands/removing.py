"""``standards-mcp data remove``."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from standards_mcp.commands import Report, ask, counted, divert_stdout, examples, offer, reports

from .importing import STARTER
from .names import (
    find_crosswalk_id,
    ids_of_set_or_jurisdiction,
    jurisdiction_option,
    sets_with_id_or_title,
)
from .workplace import ProgressLine, Workplace, loaded_sets_and_crosswalks

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.report import Report as Counts
    from standards_mcp_catalog.local.store import LocalStore


_RESTORE_HINT: Final = (
    "To get this back, import its source or an export with `standards-mcp data import`."
)


class _Removal(NamedTuple):
    """A removal, and hints for the user.

    Attributes:
        run: Removes the data; with ``dry_run=True`` only counts it. ``relations`` in its report
            counts relations of crosswalks.
        copy_hint: How to keep a copy, to show before the removal.
        restore_hint: How to restore the data, to show afterwards.
    """

    run: Callable[..., Counts]
    copy_hint: str
    restore_hint: str


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
@click.option("--crosswalk", is_flag=True, help="SET is a crosswalk, even if a set has this name.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Delete without asking, as scripts have to.")
@click.pass_obj
@reports
def remove(workplace: Workplace, /, *, dry_run: bool, yes: bool, **chosen: Any) -> Report:
    """Delete the standard SET, given by its id or title; `starter` means the starter set.

    Shows the numbers and asks for confirmation first. With --jurisdiction and no SET, all sets of
    the jurisdiction are deleted. Standards that are also in other sets stay there. Relations that
    crosswalks state for deleted standards are deleted, too; `starter` keeps standards that have an
    official text. SET may also be a crosswalk, see `data crosswalks`; if a set has the same name,
    add --crosswalk. Exit code 1 if there is no such set or crosswalk, or without a confirmation.
    """
    with divert_stdout(), ProgressLine() as progress:
        store = workplace.embedded.store
        removal = _removal(store, progress, **chosen)
        report = removal.run(dry_run=True)
        if not (dry_run or yes) and report.has_effect:
            ask(f"{_summary(report)} {removal.copy_hint}")
        if not dry_run:
            report = removal.run(dry_run=False)
    names = ("deleted", "left", "relations", "dry_run")
    hint = removal.copy_hint if dry_run else removal.restore_hint
    text = f"{_summary(report)} {hint}" if report.has_effect else _summary(report)
    return Report({name: getattr(report, name) for name in names}, lambda: text)


def _summary(report: Counts) -> str:
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
        raise click.UsageError("--crosswalk needs SET, a crosswalk, and excludes --jurisdiction")
    if standard_set == STARTER and not (crosswalk or jurisdiction):
        hint = "`standards-mcp data import starter` brings it back."
        return _Removal(partial(remove_starter, store, progress), hint, hint)
    may_be_crosswalk = standard_set and not jurisdiction
    crosswalk_id = find_crosswalk_id(store, standard_set) if may_be_crosswalk else ""
    if crosswalk and not crosswalk_id:
        raise click.ClickException(
            f"no crosswalk {standard_set!r}; `standards-mcp data crosswalks` lists them"
        )
    if crosswalk_id:
        if not crosswalk and sets_with_id_or_title(standard_set, store.sets()):
            raise click.UsageError(
                f"{standard_set!r} is a set, and also the crosswalk with the id {crosswalk_id}; "
                "add --crosswalk for the crosswalk, or --jurisdiction for the set"
            )
        hint = _copy_hint("data export --output FILE")
        return _Removal(partial(remove_crosswalk, store, crosswalk_id), hint, _RESTORE_HINT)
    ids = ids_of_set_or_jurisdiction(store, standard_set, jurisdiction)
    chosen = ["--set", ids[0]] if standard_set else ["--jurisdiction", jurisdiction or ""]
    hint = _copy_hint(f"data export {shlex.join(chosen)} --output FILE")
    return _Removal(partial(remove_sets, store, ids, progress), hint, _RESTORE_HINT)


def _copy_hint(command: str) -> str:
    return (
        f"To keep a copy, run `standards-mcp {command}` first; `standards-mcp data import FILE` "
        "brings it back."
    )
