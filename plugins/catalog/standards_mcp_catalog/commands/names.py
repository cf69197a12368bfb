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
    help="Only the sets of this one, by a name such as Florida or FL, or its id.",
)


def sets_of(jurisdiction: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the sets of a jurisdiction under all of its names here.

    Raises:
        JurisdictionNameError: The name is unknown or ambiguous.
    """
    from standards_mcp_catalog.vocabulary.names import jurisdictions_meant, jurisdictions_named

    titles = [each.jurisdiction_title for each in sets]
    by_id = [each for each in sets if each.jurisdiction_id == jurisdiction]
    if by_id and not jurisdictions_named(jurisdiction, titles):
        return by_id
    meant = jurisdictions_meant(jurisdiction, list(dict.fromkeys(titles)))
    return [each for each in sets if each.jurisdiction_title in meant]


def sets_of_one(jurisdiction: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the sets of exactly one jurisdiction, for changes that cannot be undone.

    It is meant by its id, its whole title in any case, or another name of its place.

    Raises:
        JurisdictionNameError: The jurisdiction is unknown; the message suggests similar ones.
        click.UsageError: It has several names here, all of them different from the given one.
    """
    from standards_mcp_catalog.vocabulary.names import folded, jurisdiction_key, no_jurisdiction

    spelling = folded(jurisdiction) or jurisdiction
    found = (
        [each for each in sets if jurisdiction in {each.jurisdiction_id, each.jurisdiction_title}]
        or [each for each in sets if folded(each.jurisdiction_title) == spelling]
        or [
            each
            for each in sets
            if jurisdiction_key(each.jurisdiction_title) == jurisdiction_key(jurisdiction)
        ]
    )
    titles = sorted({each.jurisdiction_title for each in found or sets})
    if not found:
        raise no_jurisdiction(jurisdiction, titles)
    if len(titles) > 1:
        raise click.UsageError(
            f"{jurisdiction!r} is {' and '.join(map(repr, titles))} here; write the one that you "
            "mean exactly so"
        )
    return found


def chosen_sets(
    store: LocalStore,
    standard_sets: Sequence[str],
    jurisdiction: str | None,
    of_jurisdiction: Callable[[str, Sequence[StandardSet]], list[StandardSet]] = sets_of,
) -> list[str] | None:
    """Return the ids of the sets with these names, of a jurisdiction if one is given.

    None means all sets, if neither is given.

    Raises:
        JurisdictionNameError: The jurisdiction is unknown or ambiguous.
        click.ClickException: The set is unknown; a `click.UsageError` if several have the name.
    """
    if not standard_sets and not jurisdiction:
        return None
    sets = store.sets()
    if jurisdiction:
        sets = of_jurisdiction(jurisdiction, sets)
    return [set_named(name, sets).id for name in standard_sets] or [each.id for each in sets]


def one_or_all(store: LocalStore, standard_set: str, jurisdiction: str | None) -> list[str]:
    """Return the id of one set, or the ids of all sets of exactly one jurisdiction.

    Raises:
        click.ClickException: See `chosen_sets`; neither a set nor a jurisdiction is given.
    """
    ids = chosen_sets(store, [standard_set] if standard_set else [], jurisdiction, sets_of_one)
    if ids is None:
        raise click.UsageError("name a set, or a jurisdiction with --jurisdiction")
    return ids


def sets_called(name: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the set with this id, or else the sets with this title in any case."""
    from standards_mcp_catalog.vocabulary.names import folded

    by_id = [each for each in sets if each.id == name]
    return by_id or [each for each in sets if folded(each.title) == folded(name)]


def set_named(name: str, sets: Sequence[StandardSet]) -> StandardSet:
    """Return the set with this id, or with a title that only it has.

    Raises:
        JurisdictionNameError: It is the name of a place without loaded standards.
        click.ClickException: The set is unknown; a `click.UsageError` if several have the name.
    """
    from standards_mcp_catalog.vocabulary.names import (
        jurisdiction_key,
        jurisdictions_named,
        no_jurisdiction,
        place_named,
        titles_like,
    )

    same = sets_called(name, sets)
    if len(same) == 1:
        return same[0]
    if same:
        is_told_apart = len({each.jurisdiction_title for each in same}) > 1
        advice = "add --jurisdiction, or give" if is_told_apart else "give"
        raise click.UsageError(
            f"{len(same)} sets have the title {name!r}; {advice} one of their ids:\n{_shown(same)}"
        )
    titles = list(dict.fromkeys(each.jurisdiction_title for each in sets))
    if places := jurisdictions_named(name, titles):
        count = sum(each.jurisdiction_title in places for each in sets)
        is_part = len(places) == 1 and jurisdiction_key(name) != jurisdiction_key(places[0])
        whole = places[0] if is_part else name
        argument = f'"{whole}"' if " " in whole else whole
        raise click.ClickException(
            f"no set {name!r}: it is a jurisdiction with {counted(count, 'set')}; write "
            f"`--jurisdiction {argument}` for all of them"
        )
    if place_named(name):
        raise no_jurisdiction(name, titles)
    near = titles_like(name, (each.title for each in sets))
    shown = [each for each in sets if each.title in near]
    hint = f" Near are:\n{_shown(shown)}" if shown else ""
    raise click.ClickException(f"no set {name!r}; `standards-mcp data sets` lists them.{hint}")


def _shown(sets: Sequence[StandardSet]) -> str:
    lines = [
        f"  {each.id}  {each.title} ({each.jurisdiction_title}, {each.subject})"
        for each in sets[:_MOST_SHOWN]
    ]
    more = [f"  and {len(sets) - _MOST_SHOWN} more"] if len(sets) > _MOST_SHOWN else []
    return "\n".join(map(printable, [*lines, *more]))


def crosswalk_named(store: LocalStore, name: str) -> str:
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
