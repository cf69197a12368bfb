"""``standards-mcp data crosswalks``, and how ``data remove`` removes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from standards_mcp.commands import (
    divert_stdout,
    examples,
    json_option,
    print_json,
    print_table,
    print_text,
)

from .workplace import Workplace

if TYPE_CHECKING:
    from standards_mcp_catalog.local.store import LocalStore


@click.command(epilog=examples("data crosswalks", "data crosswalks --json"))
@json_option
@click.pass_obj
def crosswalks(workplace: Workplace, *, as_json: bool) -> None:
    """List the crosswalks that are loaded, each with its number of relations.

    `data remove` removes one, by its id or title. Relations that standards state themselves come
    and go with their sets, and are not listed.
    """
    with divert_stdout():
        found = workplace.embedded.store.crosswalks()
    if as_json:
        print_json(
            [{"id": each.id, "title": each.title, "relations": count} for each, count in found]
        )
    elif not found:
        print_text("No crosswalks are loaded; `standards-mcp data import FILE` reads a table.")
    else:
        for each, count in found:
            print_table([(f"{count:>7,}", each.title)])
            if each.id != each.title:
                print_table([(" " * 7, each.id)])


def check_is_no_crosswalk(store: LocalStore, name: str, advice: str) -> None:
    """Make sure that what is no set is not a crosswalk, for commands about sets alone.

    Raises:
        click.UsageError: It is one, with this advice.
    """
    if name and not is_set(store, name) and crosswalk_id(store, name):
        raise click.UsageError(f"{name!r} is a crosswalk; {advice}")


def is_set(store: LocalStore, name: str) -> bool:
    """Return whether a set has *name* as its id or title."""
    folded = name.casefold().strip()
    return any(name == each.id or folded == each.title.casefold() for each in store.sets())


def chosen_crosswalk(store: LocalStore, name: str, *, is_asked: bool) -> str:
    """Return the id of the crosswalk that is to be removed; "" where *name* means none.

    Args:
        is_asked: Whether it is said that a crosswalk is meant.

    Raises:
        click.UsageError: Several crosswalks have the title, or a set has the name, too.
        click.ClickException: A crosswalk is asked for, and there is no such one.
    """
    if not is_asked and not name:
        return ""
    found = crosswalk_id(store, name)
    if is_asked and not found:
        raise click.ClickException(
            f"no crosswalk {name!r}; `standards-mcp data crosswalks` lists them"
        )
    if found and not is_asked and is_set(store, name):
        raise click.UsageError(
            f"{name!r} is a set, and a crosswalk with the id {found}; add --crosswalk for the "
            "crosswalk, or --jurisdiction for the set"
        )
    return found


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
