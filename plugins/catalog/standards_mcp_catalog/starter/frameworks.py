"""What the tables leave out: the framework of a standard, and its place there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Framework(NamedTuple):
    """A published document, and who published it.

    Attributes:
        document_id: As the Achievement Standards Network names it, or the name of the framework.
        valid: The year of the edition.
        normalized_subject: As the Common Standards Project groups the subject, if it does.
        title: What the titles of its standard sets begin with.
    """

    jurisdiction_id: str
    jurisdiction_title: str
    document_id: str
    valid: str
    subject: str
    normalized_subject: str | None
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a code stands.

    Attributes:
        path: The codes from the root down to this one.
        set_key: The last part of the standard set's id.
        short: Short forms of the code that teachers use.
        url: The page with the official wording.
    """

    framework: Framework
    path: tuple[str, ...]
    label: str
    education_levels: tuple[str, ...]
    set_key: str
    set_title: str
    short: tuple[str, ...] = ()
    url: str


def grade_title(grades: str) -> str:
    """Return what a title calls grades such as ``K``, ``3`` or ``9-10``."""
    if grades == "K":
        return "Kindergarten"
    return f"Grades {grades}" if "-" in grades else f"Grade {grades}"
