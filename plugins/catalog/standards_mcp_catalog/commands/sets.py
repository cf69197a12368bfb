"""``standards-mcp data sets``, ``crosswalks``, ``rename``, ``export`` and ``template``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from standards_mcp.commands import (
    Report,
    counted,
    divert_stdout,
    examples,
    offer,
    reports,
    table,
)
from standards_mcp.files import full_disk, replacing

from .names import (
    chosen_sets,
    ids_of_set_or_jurisdiction,
    jurisdiction_option,
    sets_of,
    sets_option,
)
from .workplace import ProgressLine, Workplace, loaded_sets


@click.command(epilog=examples("data sets", "data sets --jurisdiction Ohio", "data sets --json"))
@jurisdiction_option
@click.pass_obj
@reports
def sets(workplace: Workplace, *, jurisdiction: str | None) -> Report:
    """List the standard sets that are loaded."""
    with divert_stdout():
        found = workplace.embedded.store.sets()
        if jurisdiction:
            found = sets_of(jurisdiction, found)
    rows = [(each.records, each.description, each.id) for each in found]
    nothing = (
        "No standards are loaded; see `standards-mcp data import --help`. "
        "`standards-mcp data import starter` brings the starter set back."
    )
    return Report([each.to_dict() for each in found], lambda: _listing(rows) or nothing)


def _listing(rows: Iterable[tuple[int, str, str]]) -> str:
    """Return a table of numbers and titles, with an id that differs from its title below it."""
    return table(
        cells
        for count, title, id_ in rows
        for cells in ((f"{count:>7,}", title), ("", id_))
        if cells != ("", title)
    )


@click.command(epilog=examples("data crosswalks", "data crosswalks --json"))
@click.pass_obj
@reports
def crosswalks(workplace: Workplace) -> Report:
    """List the crosswalks that are loaded, each with its number of relations.

    `data remove` removes one, by its id or title. Relations that standards state themselves belong
    to their sets, and are not listed.
    """
    with divert_stdout():
        found = workplace.embedded.store.database.relations.crosswalks()
    rows = [(count, each.title, each.id) for each, count in found]
    nothing = "No crosswalks are loaded; `standards-mcp data import FILE` reads a table."
    facts = [{**each._asdict(), "relations": count} for each, count in found]
    return Report(facts, lambda: _listing(rows) or nothing)


@click.command(
    epilog=examples(
        "data rename --jurisdiction CPALMS Florida",
        "data rename our-math-3 'Grade 3'",
        "data rename 'Grade 3' 'Grade 3 (2020)' --jurisdiction Ohio",
    )
)
@click.argument("names", nargs=-1, metavar="[SET] NEW", shell_complete=offer(loaded_sets))
@jurisdiction_option
@click.option("--dry-run", is_flag=True, help="Show the changes, and make none.")
@click.pass_obj
@reports
def rename(
    workplace: Workplace, names: tuple[str, ...], *, jurisdiction: str | None, dry_run: bool
) -> Report:
    """Rename the standard SET, given by its id or title; without SET, rename the --jurisdiction.

    If another jurisdiction has the name NEW already, the two are merged. Later imports of these
    sets keep the name. Crosswalks cannot be renamed. Exit code 1 if there is no such set or
    jurisdiction.
    """
    from standards_mcp_catalog.importing.formats.values import clean
    from standards_mcp_catalog.importing.maintenance import rename_sets
    from standards_mcp_catalog.importing.selection import jurisdiction_names

    *set_names, last = names or ("",)
    if len(set_names) > 1 or not (set_names or (names and jurisdiction)):
        raise click.UsageError("give SET and NEW, or --jurisdiction OLD and NEW")
    if not (new := clean(last)):
        raise click.UsageError("the new name is empty")
    set_name = set_names[0] if set_names else ""
    with divert_stdout(), ProgressLine() as progress:
        store = workplace.embedded.store
        ids = ids_of_set_or_jurisdiction(store, set_name, jurisdiction)
        fields = {"title": new} if set_name else jurisdiction_names(store, new, ids)
        other_titles = [each.jurisdiction_title for each in store.sets() if each.id not in ids]
        joined = 0 if set_name else other_titles.count(fields["jurisdiction_title"])
        changed = rename_sets(store, ids, fields, progress, dry_run=dry_run)
    name = new if set_name else fields["jurisdiction_title"]
    verb = "Would rename" if dry_run else "Renamed"
    prefix = "" if set_name else "the jurisdiction of "
    records = f"{counted(changed, 'record')} {'would change' if dry_run else 'changed'}"
    merged = f", which has {counted(joined, 'other set')}" if joined else ""
    text = f"{verb} {prefix}{counted(len(ids), 'set')} to {name!r}{merged}; {records}."
    facts = {"changed": changed, "sets": len(ids), "joined": joined, "name": name}
    return Report({**facts, "dry_run": dry_run}, lambda: text)


@click.command(
    epilog=examples(
        "data export --output standards.jsonl",
        "data export --set ID > set.jsonl",
        "data export --jurisdiction Ohio > ohio.jsonl",
    )
)
@sets_option
@jurisdiction_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    default="-",
    help="A file, in place of standard output.",
)
@click.pass_obj
def export(
    workplace: Workplace, standard_sets: tuple[str, ...], jurisdiction: str | None, output: Path
) -> None:
    """Print the loaded records, one JSON object a line; `data import` reads them back.

    After the records come their crosswalk relations, one per line.
    """
    from standards_mcp_catalog.importing.maintenance import export_lines

    with divert_stdout():
        store = workplace.embedded.store
        set_ids = chosen_sets(store, standard_sets, jurisdiction)
    lines = (line + "\n" for line in export_lines(store, set_ids))
    if str(output) == "-":
        with click.open_file("-", "w", encoding="utf-8") as file:
            file.writelines(lines)
    else:
        try:
            with replacing(output) as file:
                file.writelines(lines)
        except OSError as error:
            reason = f"{output} cannot be written: {full_disk.reason_of(error)}"
            raise click.ClickException(reason) from None


@click.command(epilog=examples("data template csv > standards.csv"))
@click.argument("kind", type=click.Choice(["csv"]))
def template(kind: str) -> None:
    """Print a table to fill in, for `data import`.

    With csv, the table has every known column and three example rows.
    """
    del kind  # there is only one
    from standards_mcp_catalog.importing.formats.tabular import template as csv_template

    click.echo(csv_template(), nl=False, file=sys.stdout)
