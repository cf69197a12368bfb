"""Which jurisdictions, subjects and grades somebody wants, as people write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from standards_mcp.catalog.vocabulary.grades import parse_grades
from standards_mcp.catalog.vocabulary.names import (
    fits_jurisdiction,
    jurisdictions_named,
    of_one_place,
    titles_like,
)
from standards_mcp.catalog.vocabulary.subjects import match_subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to take of a source. An empty tuple means all, several values mean any of them.

    Attributes:
        jurisdictions: Ids or names, see `names.jurisdictions_named`; words of a title are enough.
        subjects: As people say them, see `subjects.match_subjects`.
        grades: As people write them, see `grades.parse_grades`.

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
        """What to tell where a source has nothing of it."""
        asked = (*self.jurisdictions, *self.subjects, *self.grades)
        return f"nothing here fits {' and '.join(map(repr, asked))}" if asked else "nothing is here"

    def has_jurisdiction(self, id_: str, title: str) -> bool:
        """Return whether a jurisdiction is selected: by its id, a name, or words of its title."""
        return not self.jurisdictions or any(
            each.strip().casefold() == id_.casefold() or fits_jurisdiction(each, title)
            for each in self.jurisdictions
        )

    def jurisdictions_of(self, listed: Mapping[str, str]) -> list[str]:
        """Return the ids of the selected ones among jurisdictions, whose titles stand by their ids.

        Raises:
            JurisdictionNameError: One of the names may be that of several.
        """
        if not self.jurisdictions:
            return list(listed)
        found = dict[str, None]()
        for name in self.jurisdictions:
            ids = [id_ for id_ in listed if id_.casefold() == name.strip().casefold()]
            titles = [each for each in listed.values() if fits_jurisdiction(name, each)]
            if not ids and titles:
                meant = of_one_place(name, jurisdictions_named(name, titles) or titles)
                ids = [id_ for id_, title in listed.items() if title in meant]
            found.update(dict.fromkeys(ids))
        return list(found)

    def near(self, titles: Iterable[str]) -> str:
        """Return what to tell of the titles that are near to a name, or nothing."""
        every = list(titles)
        close = [like for name in self.jurisdictions for like in titles_like(name, every)]
        return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""

    def has_subject(self, *names: str) -> bool:
        """Return whether a subject with these names is selected."""
        known = [name for name in names if name]
        return not self.subjects or any(match_subjects(each, known) for each in self.subjects)

    def has_grade(self, levels: tuple[str, ...]) -> bool:
        """Return whether any of these levels is selected; no levels may be any grade."""
        return not self._levels or not levels or not self._levels.isdisjoint(levels)
