"""``standards-mcp data crosswalks``, and how ``data remove`` removes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from standards_mcp._utils.streams import divert_stdout
from standards_mcp.cli.invocation import Invocation
from standards_mcp.cli.output import examples, print_json, print_table

if TYPE_CHECKING:
    from standards_mcp.catalog.local.store import LocalStore


@click.command(epilog=examples("data crosswalks", "data crosswalks --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def crosswalks(invocation: Invocation, *, as_json: bool) -> None:
    """List the crosswalks that are loaded, each with its number of relations.

    `data remove` removes one, by its id or title. Relations that standards state themselves come
    and go with their sets, and are not listed.
    """
    with divert_stdout():
        found = invocation.embedded_catalog.store.crosswalks()
    if as_json:
        print_json(
            [{"id": each.id, "title": each.title, "relations": count} for each, count in found]
        )
    elif not found:
        click.echo("No crosswalks are loaded; `standards-mcp data import FILE` reads a table.")
    else:
        for each, count in found:
            print_table([(f"{count:>7,}", each.title)])
            if each.id != each.title:
                print_table([(" " * 7, each.id)])


def crosswalk_id(store: LocalStore, name: str) -> str:
    """Return the id of the crosswalk that *name* means, its id or title; "" where there is none.

    Raises:
        click.UsageError: Several crosswalks have the title.
    """
    found = [each for each, _ in store.crosswalks()]
    if name in (each.id for each in found):
        return name
    same = [each.id for each in found if each.title.casefold() == name.casefold().strip()]
    if len(same) > 1:
        raise click.UsageError(
            f"{len(same)} crosswalks have the title {name!r}; give one of their ids: "
            f"{', '.join(same[:5])}"
        )
    return same[0] if same else ""
