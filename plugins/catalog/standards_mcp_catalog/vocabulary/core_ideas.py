"""The disciplinary core ideas of the NGSS, which the codes of performance expectations name.

Practices and crosscutting concepts are not in the codes, see
https://www.nextgenscience.org/understanding-standards/understanding-standards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .notation import canonical_key

CORE_IDEAS: Final[Mapping[str, str]] = {
    "PS1": "Matter and Its Interactions",
    "PS2": "Motion and Stability",
    "PS3": "Energy",
    "PS4": "Waves and Their Applications",
    "LS1": "From Molecules to Organisms",
    "LS2": "Ecosystems",
    "LS3": "Heredity",
    "LS4": "Biological Evolution",
    "ESS1": "Earth's Place in the Universe",
    "ESS2": "Earth's Systems",
    "ESS3": "Earth and Human Activity",
    "ETS1": "Engineering Design",
}
"""Short titles of the core ideas, by the part of the code that names them."""
SCIENCE_BANDS: Final = (("K", "1", "2", "K.2"), ("3", "4", "5", "3.5"), ("MS",), ("HS",))
"""The grades that codes begin with, by band, in the spelling of `canonical_key`."""
_GRADES: Final = tuple(grades for band in SCIENCE_BANDS for grades in band)
_CODE: Final = re.compile(
    rf"(?P<grades>{'|'.join(map(re.escape, _GRADES))})\.(?P<idea>{'|'.join(CORE_IDEAS)})(?:\..*)?"
)
_SHORTEST_NAME: Final = 2


def grades_and_idea(code: str) -> tuple[str, str] | None:
    """Return ``("MS", "PS1")`` for MS-PS1-4, or None for a code of another framework."""
    match = _CODE.fullmatch(canonical_key(code))
    return (match["grades"], match["idea"]) if match else None


def titled(idea: str) -> str:
    """Return a core idea with its title: ``PS1: Matter and Its Interactions``."""
    return f"{idea}: {CORE_IDEAS[idea]}"


def ideas_named(text: str) -> list[str]:
    """Return the core ideas for ``PS1``, ``PS1.A``, ``PS`` or a part of a title."""
    wanted = text.strip().casefold()
    if len(wanted) < _SHORTEST_NAME:
        return []
    by_code = [
        idea
        for idea in CORE_IDEAS
        if idea.casefold().startswith(wanted) or wanted.startswith(idea.casefold())
    ]
    return by_code or [idea for idea, title in CORE_IDEAS.items() if wanted in title.casefold()]


def code_prefixes(idea: str) -> list[str]:
    """Return the beginnings of all codes of a core idea, in the spelling of `canonical_key`."""
    return [f"{grades}.{idea}" for grades in _GRADES]
