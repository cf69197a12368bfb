"""What the codes of the C3 Framework for social studies say.

    D2.Eco.1.K-2       dimension 2, economics, indicator 1, for kindergarten to grade 2
    D4.3.9-12          dimension 4, indicator 3, for grades 9 to 12

https://www.socialstudies.org/standards/c3 describes them.
"""

from __future__ import annotations

import re
from typing import Final

from standards_mcp_catalog.vocabulary.grades import parse_grades

from .frameworks import Framework, Place

_CODE: Final = re.compile(
    r"(?P<part>D[134]|D2\.(Civ|Eco|Geo|His))\.\d+\.(?P<grades>K-2|3-5|6-8|9-12)"
)
_PARTS: Final = {
    "D1": "Developing Questions and Planning Inquiries",
    "D2.Civ": "Civics",
    "D2.Eco": "Economics",
    "D2.Geo": "Geography",
    "D2.His": "History",
    "D3": "Evaluating Sources and Using Evidence",
    "D4": "Communicating Conclusions and Taking Informed Action",
}

C3: Final = Framework(
    jurisdiction_id="C3_FRAMEWORK_(NCSS)",
    jurisdiction_title="C3 Framework (NCSS)",
    document_id="C3",
    valid="2013",
    subject="Social Studies",
    normalized_subject="Social Studies",
    title="C3 Framework",
)


def place(notation: str) -> Place | None:
    """Return where a code stands; None if it is not one of the C3 Framework."""
    match = _CODE.fullmatch(notation)
    if match is None:
        return None
    part, grades = match["part"], match["grades"]
    return Place(
        framework=C3,
        path=(notation,),
        label="Indicator",
        education_levels=parse_grades(grades),
        set_key=f"{part.lower().replace('.', '-')}-grades-{grades.lower()}",
        set_title=f"{C3.title}: {_PARTS[part]}, Grades {grades}",
        url="https://www.socialstudies.org/standards/c3",
    )
