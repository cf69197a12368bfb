"""``standards-mcp data sets``, ``remove``, ``export`` and ``template``."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click

from standards_mcp._utils.streams import divert_stdout
from standards_mcp._utils.text import counted
from standards_mcp.cli.completion import loaded_sets, loaded_sets_and_crosswalks, offer
from standards_mcp.cli.invocation import Invocation
from standards_mcp.cli.output import examples, print_json, print_table

from .crosswalks import crosswalk_id, relations_of_crosswalks
from .importing import STARTER
from .progress import ImportProgress

if TYPE_CHECKING:
    from standards_mcp.catalog.importing.report import Report
    from standards_mcp.catalog.local.store import LocalStore


sets_option = click.option(
    "--set",
    "standard_sets",
    multiple=True,
    metavar="SET",
    shell_complete=offer(loaded_sets),
    help="Only this standard set, by its id or title; may be repeated.",
)


@click.command(epilog=examples("data sets", "data sets --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def sets(invocation: Invocation, *, as_json: bool) -> None:
    """List the standard sets that are loaded."""
    with divert_stdout():
        found = invocation.embedded_catalog.store.sets()
    if as_json:
        print_json([each.to_dict() for each in found])
    elif not found:
        click.echo(
            "No standards are loaded; see `standards-mcp data import --help`. "
            "`standards-mcp data import starter` brings the starter set back."
        )
    else:
        for each in found:
            title = f"{each.title} ({each.jurisdiction_title}, {each.subject})"
            print_table([(f"{each.records:>7,}", title), ("", each.id)])


@click.command(
    epilog=examples(
        "data remove starter",
        "data remove --dry-run 'Grade 3 Mathematics'",
        "data remove crosswalk.csv",
    )
)
@click.argument("standard_set", metavar="SET", shell_complete=offer(loaded_sets_and_crosswalks))
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def remove(ctx: click.Context, standard_set: str, *, dry_run: bool, as_json: bool) -> None:
    """Delete the standard SET, given by its id or title; `starter` means the whole starter set.

    Standards that are in other sets too stay in those. What crosswalks say of deleted standards
    goes with them. SET may also be a crosswalk, see `data crosswalks`. Exit code 1 when there is no
    such set or crosswalk.
    """
    with divert_stdout(), ImportProgress() as progress:
        store = ctx.ensure_object(Invocation).embedded_catalog.store
        report = _remove(store, standard_set, progress, dry_run=dry_run)
    if as_json:
        names = ("deleted", "left", "relations", "dry_run")
        print_json({name: getattr(report, name) for name in names})
        return
    verb = "Would delete" if dry_run else "Deleted"
    parts = [counted(report.deleted, "record")] if report.deleted or not report.relations else []
    parts += [counted(report.relations, "relation")] if report.relations else []
    stay = f"{report.left:,} {'stays' if report.left == 1 else 'stay'} in other sets"
    kept = f"; {stay}" if report.deleted or not report.relations else ""
    click.echo(f"{verb} {' and '.join(parts)}{kept}.")


def _remove(store: LocalStore, name: str, progress: ImportProgress, *, dry_run: bool) -> Report:
    """Remove a set, the starter set or a crosswalk.

    Returns:
        A report whose ``relations`` are those of crosswalks that were deleted.
    """
    from standards_mcp.catalog.importing.maintenance import (
        remove_crosswalk,
        remove_set,
        remove_starter,
    )

    if name == STARTER:
        remove = partial(remove_starter, store, progress)
    elif not _is_set(store, name) and (crosswalk := crosswalk_id(store, name)):
        return remove_crosswalk(store, crosswalk, dry_run=dry_run)
    else:
        remove = partial(remove_set, store, set_id(store, name), progress)
    before = relations_of_crosswalks(store)
    report = remove(dry_run=dry_run)
    report.relations = before - relations_of_crosswalks(store)
    return report


@click.command(
    epilog=examples("data export --output standards.jsonl", "data export --set ID > set.jsonl")
)
@sets_option
@click.option(
    "--output",
    type=click.File("w", encoding="utf-8", atomic=True),
    default="-",
    help="A file, in place of standard output.",
)
@click.pass_obj
def export(invocation: Invocation, standard_sets: tuple[str, ...], output: TextIO) -> None:
    """Print the loaded records, one JSON object a line; `data import` reads them back."""
    from standards_mcp.catalog.importing.maintenance import export_lines

    with divert_stdout():
        store = invocation.embedded_catalog.store
        wanted = [set_id(store, each) for each in standard_sets] or None
    output.writelines(line + "\n" for line in export_lines(store, wanted))


@click.command(epilog=examples("data template csv > standards.csv"))
@click.argument("kind", type=click.Choice(["csv"]))
def template(kind: str) -> None:
    """Print a table to fill in, for `data import`.

    With csv it has every column that is known, and three rows that show how.
    """
    del kind  # there is only one
    from standards_mcp.catalog.importing.formats.tabular import template as csv_template

    click.echo(csv_template(), nl=False, file=sys.stdout)


def _is_set(store: LocalStore, name: str) -> bool:
    folded = name.casefold().strip()
    return any(name == each.id or folded == each.title.casefold() for each in store.sets())


def set_id(store: LocalStore, name: str) -> str:
    """Return the id of the set that *name* means: its id, or a title that only one set has.

    Raises:
        click.ClickException: There is no such set; a `click.UsageError` when there are several.
    """
    found = store.sets()
    if name in (each.id for each in found):
        return name
    same = [each for each in found if each.title.casefold() == name.casefold().strip()]
    if len(same) == 1:
        return same[0].id
    if not same:
        raise click.ClickException(f"no set {name!r}; `standards-mcp data sets` lists them")
    ids = ", ".join(each.id for each in same[:5])
    raise click.UsageError(
        f"{len(same)} sets have the title {name!r}; give one of their ids: {ids}"
    )
