"""What the codes of the CSTA K-12 Computer Science Standards of 2017 say.

    1A-AP-08           level 1A, algorithms and programming, number 8

https://csteachers.org/k12standards/ describes them.
"""

from __future__ import annotations

import re
from typing import Final

from standards_mcp_catalog.vocabulary.grades import parse_grades

from .frameworks import Framework, Place

_CODE: Final = re.compile(r"(?P<level>1A|1B|2|3A|3B)-(CS|NI|DA|AP|IC)-\d\d")
_GRADES: Final = {"1A": "K-2", "1B": "3-5", "2": "6-8", "3A": "9-10", "3B": "11-12"}

CSTA: Final = Framework(
    jurisdiction_id="CSTA",
    jurisdiction_title="CSTA",
    document_id="2017",
    valid="2017",
    subject="Computer Science",
    normalized_subject=None,
    title="CSTA Computer Science",
)


def place(notation: str) -> Place | None:
    """Return where a code stands; None if it is not one of the CSTA standards."""
    match = _CODE.fullmatch(notation)
    if match is None:
        return None
    level = match["level"]
    grades = _GRADES[level]
    return Place(
        framework=CSTA,
        path=(notation,),
        label="Standard",
        education_levels=parse_grades(grades),
        set_key=f"level-{level.lower()}",
        set_title=f"{CSTA.title}: Level {level}, Grades {grades}",
        url="https://csteachers.org/k12standards/",
    )
