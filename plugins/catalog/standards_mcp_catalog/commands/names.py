"""Choose loaded standard sets and crosswalks by the names that users give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from standards_mcp.commands import counted, offer, printable

from .workplace import loaded_jurisdictions, loaded_sets

if TYPE_CHECKING:
    from standards_mcp_catalog.local.store import LocalStore
    from standards_mcp_catalog.sets import StandardSet

_MOST_SHOWN: Final = 10

sets_option = click.option(
    "--set",
    "standard_sets",
    multiple=True,
    metavar="SET",
    shell_complete=offer(loaded_sets),
    help="Only this standard set, by its id or title; may be repeated.",
)
jurisdiction_option = click.option(
    "--jurisdiction",
    metavar="NAME",
    shell_complete=offer(loaded_jurisdictions),
    help="Only sets of this jurisdiction: its name, abbreviation (Florida, FL) or id.",
)


def sets_of(jurisdiction: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the sets whose jurisdiction id or title matches *jurisdiction*.

    Other titles of the same place match, too.

    Raises:
        JurisdictionNameError: The name is unknown or ambiguous.
    """
    from standards_mcp_catalog.vocabulary.names import jurisdictions_meant, jurisdictions_named

    titles = [each.jurisdiction_title for each in sets]
    by_id = [each for each in sets if each.jurisdiction_id == jurisdiction]
    if by_id and not jurisdictions_named(jurisdiction, titles):
        return by_id
    matching = jurisdictions_meant(jurisdiction, list(dict.fromkeys(titles)))
    return [each for each in sets if each.jurisdiction_title in matching]


def sets_of_exact_jurisdiction(jurisdiction: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the sets of exactly one jurisdiction, for changes that cannot be undone.

    Match the id or the title, or else the title in any case or an alias of the place.

    Raises:
        JurisdictionNameError: The jurisdiction is unknown; the message suggests similar ones.
        click.UsageError: Several loaded jurisdiction titles match, none of them exactly.
    """
    from standards_mcp_catalog.vocabulary.names import jurisdiction_key, unknown_jurisdiction_error

    key = jurisdiction_key(jurisdiction)
    found = [
        each for each in sets if jurisdiction in {each.jurisdiction_id, each.jurisdiction_title}
    ] or [each for each in sets if jurisdiction_key(each.jurisdiction_title) == key]
    titles = sorted({each.jurisdiction_title for each in found or sets})
    if not found:
        raise unknown_jurisdiction_error(jurisdiction, titles)
    if len(titles) > 1:
        raise click.UsageError(
            f"{jurisdiction!r} matches {' and '.join(map(repr, titles))}; use one of these titles "
            "exactly."
        )
    return found


def chosen_sets(
    store: LocalStore,
    standard_sets: Sequence[str],
    jurisdiction: str | None,
    match_jurisdiction: Callable[[str, Sequence[StandardSet]], list[StandardSet]] = sets_of,
) -> list[str] | None:
    """Return the ids of the named sets; with only a jurisdiction, of all its sets.

    With neither, return None, which means all sets.

    Raises:
        JurisdictionNameError: The jurisdiction is unknown or ambiguous.
        click.ClickException: The set is unknown; a `click.UsageError` if several have the name.
    """
    if not standard_sets and not jurisdiction:
        return None
    sets = store.sets()
    if jurisdiction:
        sets = match_jurisdiction(jurisdiction, sets)
    return [find_set(name, sets).id for name in standard_sets] or [each.id for each in sets]


def ids_of_set_or_jurisdiction(
    store: LocalStore, standard_set: str, jurisdiction: str | None
) -> list[str]:
    """Return the id of one set, or the ids of all sets of exactly one jurisdiction.

    Raises:
        click.ClickException: As in `chosen_sets`, or neither a set nor a jurisdiction is given.
    """
    names = [standard_set] if standard_set else []
    ids = chosen_sets(store, names, jurisdiction, sets_of_exact_jurisdiction)
    if ids is None:
        raise click.UsageError("name a set, or a jurisdiction with --jurisdiction")
    return ids


def sets_with_id_or_title(name: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the set with this id, or else the sets with this title in any case."""
    from standards_mcp_catalog.vocabulary.names import folded

    by_id = [each for each in sets if each.id == name]
    return by_id or [each for each in sets if folded(each.title) == folded(name)]


def find_set(name: str, sets: Sequence[StandardSet]) -> StandardSet:
    """Return the set with this id, or the only set with this title.

    Raises:
        JurisdictionNameError: *name* is a place, and no standards of it are loaded.
        click.ClickException: The set is unknown; a `click.UsageError` if several have the name.
    """
    from standards_mcp_catalog.vocabulary.names import (
        jurisdiction_key,
        jurisdictions_named,
        place_named,
        titles_like,
        unknown_jurisdiction_error,
    )

    found = sets_with_id_or_title(name, sets)
    if len(found) == 1:
        return found[0]
    if found:
        differ_by_jurisdiction = len({each.jurisdiction_title for each in found}) > 1
        advice = "add --jurisdiction, or give" if differ_by_jurisdiction else "give"
        raise click.UsageError(
            f"{len(found)} sets have the title {name!r}; {advice} one of their ids:\n"
            f"{_format_sets(found)}"
        )
    titles = list(dict.fromkeys(each.jurisdiction_title for each in sets))
    if places := jurisdictions_named(name, titles):
        count = sum(each.jurisdiction_title in places for each in sets)
        first = places[0]
        is_abbreviation = len(places) == 1 and jurisdiction_key(name) != jurisdiction_key(first)
        jurisdiction = first if is_abbreviation else name
        argument = f'"{jurisdiction}"' if " " in jurisdiction else jurisdiction
        raise click.ClickException(
            f"no set {name!r}: it is a jurisdiction with {counted(count, 'set')}; write "
            f"`--jurisdiction {argument}` for all of them"
        )
    if place_named(name):
        raise unknown_jurisdiction_error(name, titles)
    similar_titles = titles_like(name, (each.title for each in sets))
    similar = [each for each in sets if each.title in similar_titles]
    hint = f" Similar sets:\n{_format_sets(similar)}" if similar else ""
    raise click.ClickException(f"no set {name!r}; `standards-mcp data sets` lists them.{hint}")


def _format_sets(sets: Sequence[StandardSet]) -> str:
    lines = [f"  {each.id}  {each.description}" for each in sets[:_MOST_SHOWN]]
    more = [f"  and {len(sets) - _MOST_SHOWN} more"] if len(sets) > _MOST_SHOWN else []
    return "\n".join(map(printable, [*lines, *more]))


def find_crosswalk_id(store: LocalStore, name: str) -> str:
    """Return the id of the crosswalk with this id or title, or "".

    Raises:
        click.UsageError: Several crosswalks have the title.
    """
    crosswalks = [each for each, _ in store.database.relations.crosswalks()]
    if name in (each.id for each in crosswalks):
        return name
    same = [each.id for each in crosswalks if each.title.casefold() == name.casefold().strip()]
    if len(same) > 1:
        raise click.UsageError(
            f"{len(same)} crosswalks have the title {name!r}; give one of their ids: "
            f"{', '.join(same[:5])}"
        )
    return same[0] if same else ""
