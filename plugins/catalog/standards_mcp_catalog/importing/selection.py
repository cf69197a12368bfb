"""Select records to import by jurisdiction, subject and grade, and rename jurisdictions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final

from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.sets import GivenNames
from standards_mcp_catalog.vocabulary.grades import parse_grades
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    fits_jurisdiction,
    folded,
    jurisdiction_key,
    jurisdictions_named,
    listed,
    of_one_place,
    place_named,
    proper_name,
    quoted,
    titles_like,
)
from standards_mcp_catalog.vocabulary.subjects import match_subjects

from .formats.values import clean
from .report import Problem, note
from .staging import Staging

_OPTION: Final = "--jurisdiction"
_NOUNS: Final = {"title": "set", "jurisdiction_title": "jurisdiction"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters of an import. An empty tuple means all, several values mean any of them.

    Attributes:
        jurisdictions: Ids or names, see `names.jurisdictions_named`; words of a title are enough.
        subjects: Everyday names, see `subjects.match_subjects`.
        grades: Everyday spellings, see `grades.parse_grades`.

    Raises:
        UnknownGradeError: One of the grades does not exist.
    """

    jurisdictions: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    _levels: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        levels = (level for grade in self.grades for level in parse_grades(grade))
        object.__setattr__(self, "_levels", frozenset(levels))

    @property
    def no_match(self) -> str:
        """Message for a source without any selected standards."""
        names = (*self.jurisdictions, *self.subjects, *self.grades)
        return f"nothing here fits {' and '.join(map(repr, names))}" if names else "nothing is here"

    def has_jurisdiction(self, id_: str, title: str) -> bool:
        """Return whether a jurisdiction is selected: by its id, a name, or words of its title."""
        return not self.jurisdictions or any(
            each.strip().casefold() == id_.casefold() or fits_jurisdiction(each, title)
            for each in self.jurisdictions
        )

    def jurisdictions_of(self, titles: Mapping[str, str]) -> list[str]:
        """Return the ids of the selected jurisdictions; *titles* has the titles of all by id.

        Raises:
            JurisdictionNameError: A name matches several places.
        """
        if not self.jurisdictions:
            return list(titles)
        found = dict[str, None]()
        for name in self.jurisdictions:
            ids = [id_ for id_ in titles if id_.casefold() == name.strip().casefold()]
            fitting = [each for each in titles.values() if fits_jurisdiction(name, each)]
            if not ids and fitting:
                matches = of_one_place(name, jurisdictions_named(name, fitting) or fitting)
                ids = [id_ for id_, title in titles.items() if title in matches]
            found.update(dict.fromkeys(ids))
        return list(found)

    def hint_on_similar(self, titles: Iterable[str]) -> str:
        """Return a hint with the titles that are similar to a selected jurisdiction, or ""."""
        titles = list(titles)
        similar = [each for name in self.jurisdictions for each in titles_like(name, titles)]
        return f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""

    def has_subject(self, *names: str) -> bool:
        """Return whether a subject with these names is selected."""
        known = [name for name in names if name]
        return not self.subjects or any(match_subjects(each, known) for each in self.subjects)

    def has_grade(self, levels: tuple[str, ...]) -> bool:
        """Return whether any of these levels is selected; True if there are no levels."""
        return not self._levels or not levels or not self._levels.isdisjoint(levels)


# Names are stored by set, since one publisher issues packages of several states.
def jurisdiction_names(
    store: LocalStore, name: str, set_ids: Collection[str] = ()
) -> dict[str, str]:
    """Return the entry of `GivenNames` that moves a set to the jurisdiction *name*.

    If other sets have a jurisdiction of this name, in any case, the entry has its id and title;
    else the id is made from the name.

    Args:
        set_ids: The sets to move; their present jurisdictions do not count.
    """
    title = proper_name(clean(name))
    id_ = re.sub(r"\W+", "-", title.casefold()).strip("-") or "unknown"
    others = [each for each in store.sets() if each.id not in set_ids]
    # The same spelling is the best match: of equal ones, `sorted` keeps the order.
    for each in sorted(others, key=lambda each: each.jurisdiction_title != title):
        own = each.jurisdiction_title
        if (folded(own) or own) == (folded(title) or title):
            id_, title = each.jurisdiction_id, own
            break
    return {"jurisdiction_id": id_, "jurisdiction_title": title}


def settle_jurisdiction(
    store: LocalStore, staging: Staging, name: str
) -> tuple[GivenNames, list[Problem]]:
    """Rename or select the jurisdiction of the records that were read.

    If they have one jurisdiction, it gets *name*. If they have several, only the one that *name*
    matches stays selected, and keeps its title. Records that the filters exclude count, too.

    Returns:
        The new names of sets, and notes for the report.

    Raises:
        JurisdictionNameError: *name* matches none or more than one of several jurisdictions, or the
            only one is another known place.
    """
    read = staging.jurisdictions()
    if len({jurisdiction_key(title) for title in read.values()}) > 1:
        staging.select_jurisdictions(_matching_ids(read, name))
        return {}, []
    names = jurisdiction_names(store, name)
    title = names["jurisdiction_title"]
    others = [each for each in dict.fromkeys(read.values()) if each != title]
    if others:
        _refuse_another_place(others, name)
    detail = f"{listed(others)} to {title!r}"
    notes = [note("jurisdiction renamed", _OPTION, detail=detail)] if others else []
    return dict.fromkeys(staging.selected_sets(), names), notes


def notes_on_names(earlier: GivenNames, staging: Staging) -> list[Problem]:
    """Return notes on sets and jurisdictions that keep a name of a user in place of the source's.

    Args:
        earlier: The names that users gave before this import.
    """
    notes: list[Problem] = []
    read = staging.selected_sets() if earlier else {}
    for index, (key, noun) in enumerate(_NOUNS.items()):
        renamed = [
            (names[key], titles[index])
            for set_id, titles in read.items()
            if key in (names := earlier.get(set_id, {})) and names[key] != titles[index]
        ]
        for name, pairs in groupby(sorted(set(renamed)), itemgetter(0)):
            detail = f"{name!r} in place of {listed(title for _, title in pairs)}"
            notes.append(note(f"{noun} named as before", "catalog", detail=detail))
    return notes


def _refuse_another_place(read: Collection[str], name: str) -> None:
    place, places_read = place_named(name), {place_named(title) for title in read} - {None}
    if place and places_read and place not in places_read:
        raise JurisdictionNameError(
            f"{_OPTION} {quoted(name)} does not fit the records that were read: they are of "
            f"{listed(read)}. Import them without {_OPTION}; if they should get this name all the "
            "same, run `standards-mcp data rename --jurisdiction OLD NEW` afterwards."
        )


def _matching_ids(read: Mapping[str, str], name: str) -> list[str]:
    titles = list(dict.fromkeys(read.values()))
    found = of_one_place(name, jurisdictions_named(name, titles))
    ids = [id_ for id_, title in read.items() if title in found or folded(id_) == folded(name)]
    if ids:
        return ids
    similar = titles_like(name, titles)
    hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    raise JurisdictionNameError(
        f"{_OPTION} {quoted(name)} is not one of the jurisdictions that were read, and one name "
        f"cannot be given to several: {listed(titles, 'and')}.{hint} Import one of them, and then "
        "rename it with `standards-mcp data rename --jurisdiction OLD NEW`."
    )
