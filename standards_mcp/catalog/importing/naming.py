"""What the jurisdiction of an import is called, whatever the source says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from standards_mcp.catalog.local.store import LocalStore
from standards_mcp.catalog.sets import GivenNames
from standards_mcp.catalog.vocabulary.names import (
    JurisdictionNameError,
    jurisdictions_named,
    listed,
    of_one_place,
    quoted,
    titles_like,
)
from standards_mcp.catalog.vocabulary.places import folded, place_named, proper_name

from .formats.text import clean
from .problems import Problem, note
from .staging import Staging

_OPTION: Final = "--jurisdiction"


def jurisdiction_names(store: LocalStore, name: str) -> dict[str, str]:
    """Return the names, as `GivenNames` has them, that make a set one of a jurisdiction.

    The jurisdiction that is called so already keeps its id; a new one has an id made of its name.
    """
    title = proper_name(clean(name))
    known = (each.jurisdiction_id for each in store.sets() if each.jurisdiction_title == title)
    made = re.sub(r"\W+", "-", title.casefold()).strip("-") or "unknown"
    return {"jurisdiction_id": next(known, made), "jurisdiction_title": title}


def settle_jurisdiction(
    store: LocalStore, staging: Staging, name: str, given: GivenNames
) -> tuple[GivenNames, list[Problem]]:
    """Let what was read be of one jurisdiction.

    Of a single one, all is given the name. Of several, only what the name means stays selected,
    and is called as its source calls it.

    Returns:
        What sets are called now, and what to tell of it.

    Raises:
        JurisdictionNameError: Several were read, and the name means none of them, or more than one.
    """
    read = staging.jurisdictions()
    if len({place_named(title) or title for title in read.values()}) > 1:
        staging.select_jurisdictions(_chosen(read, name))
        return given, []
    names = jurisdiction_names(store, name)
    after = {**given}
    for set_id in staging.selected_sets():
        after[set_id] = {**given.get(set_id, {}), **names}
    title = names["jurisdiction_title"]
    others = [each for each in dict.fromkeys(read.values()) if each != title]
    detail = f"{listed(others)} is called {title!r}"
    return after, [note("jurisdiction named", _OPTION, detail=detail)] if others else []


def told_names(before: GivenNames, staging: Staging) -> list[Problem]:
    """Return what to tell of the jurisdictions that get a name again, given by a user before."""
    titles = {
        names["jurisdiction_title"]
        for set_id in staging.selected_sets()
        if "jurisdiction_title" in (names := before.get(set_id, {}))
    }
    others = sorted(set(staging.jurisdictions().values()) - titles)
    if not titles or not others:
        return []
    detail = f"{listed(titles)} in place of {listed(others)}"
    return [note("jurisdiction named as before", "catalog", detail=detail)]


def _chosen(read: Mapping[str, str], name: str) -> list[str]:
    titles = list(dict.fromkeys(read.values()))
    found = of_one_place(name, jurisdictions_named(name, titles))
    ids = [id_ for id_, title in read.items() if title in found or folded(id_) == folded(name)]
    if ids:
        return ids
    near = titles_like(name, titles)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise JurisdictionNameError(
        f"{_OPTION} {quoted(name)} is none of the jurisdictions that were read, and there are too "
        f"many to call all of them so: {listed(titles, 'and')}.{hint} Import one of them, and then "
        "call it as you like with `standards-mcp data rename --jurisdiction OLD NEW`."
    )
