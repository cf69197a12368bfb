"""Which jurisdictions, subjects and grades somebody wants, as people write them."""

from __future__ import annotations

from dataclasses import dataclass, field

from standards_mcp.catalog.vocabulary.grades import parse_grades
from standards_mcp.catalog.vocabulary.notation import plain_text
from standards_mcp.catalog.vocabulary.subjects import match_subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to take of a source. An empty tuple means all, several values mean any of them.

    Attributes:
        jurisdictions: Ids or titles; part of a title is enough.
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
        """Return whether a jurisdiction is selected: by its id, or by a part of its title."""
        names = [plain_text(each).casefold().strip() for each in self.jurisdictions]
        folded = plain_text(title).casefold()
        return not names or any(each == id_.casefold() or each in folded for each in names)

    def has_subject(self, *names: str) -> bool:
        """Return whether a subject with these names is selected."""
        known = [name for name in names if name]
        return not self.subjects or any(match_subjects(each, known) for each in self.subjects)

    def has_grade(self, levels: tuple[str, ...]) -> bool:
        """Return whether any of these levels is selected; no levels may be any grade."""
        return not self._levels or not levels or not self._levels.isdisjoint(levels)
