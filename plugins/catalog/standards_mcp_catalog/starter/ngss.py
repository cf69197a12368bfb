"""What the codes of the Next Generation Science Standards say.

    MS-PS1             a core idea in a grade or band, the root
    MS-PS1-1           a performance expectation
    4-ESS2-1           the same in grade 4
    3-5-ETS1-1         engineering design, which has bands in elementary school, too

https://www.nextgenscience.org/understanding-standards/understanding-standards describes them.
"""

from __future__ import annotations

import re
from typing import Final

from standards_mcp_catalog.vocabulary.grades import parse_grades

from .frameworks import Framework, Place, grade_title

_SITE: Final = "https://www.nextgenscience.org"
_CODE: Final = re.compile(r"(?P<idea>(?P<grades>K-2|3-5|K|[1-5]|MS|HS)-(?P<topic>[A-Z]+\d))(-\d+)?")
_SCHOOLS: Final = {"MS": ("6-8", "Middle School"), "HS": ("9-12", "High School")}
# The names of the core ideas as the site writes them in its addresses.
_PAGES: Final = {
    "PS1": "matter-and-its-interactions",
    "PS2": "motion-and-stability-forces-and-interactions",
    "PS3": "energy",
    "PS4": "waves-and-their-applications-technologies-information-transfer",
    "LS1": "molecules-organisms-structures-and-processes",
    "LS2": "ecosystems-interactions-energy-and-dynamics",
    "LS3": "heredity-inheritance-and-variation-traits",
    "LS4": "biological-evolution-unity-and-diversity",
    "ESS1": "earths-place-universe",
    "ESS2": "earths-systems",
    "ESS3": "earth-and-human-activity",
    "ETS1": "engineering-design",
}

NGSS: Final = Framework(
    jurisdiction_id="71E5AA409D894EB0B43A8CD82F727BFE",
    jurisdiction_title="Next Generation Science Standards",
    document_id="D2454348",
    valid="2013",
    subject="Science",
    normalized_subject="Science",
    title="NGSS",
)


def place(notation: str) -> Place | None:
    """Return where a code stands; None if it is not one of the NGSS."""
    match = _CODE.fullmatch(notation)
    if match is None or match["topic"] not in _PAGES:
        return None
    idea, grades = match["idea"], match["grades"]
    is_idea = notation == idea
    grades, course = _SCHOOLS.get(grades) or (grades, grade_title(grades))
    levels = parse_grades(grades)
    page = "dci-arrangement" if is_idea else "pe"
    return Place(
        framework=NGSS,
        path=(idea,) if is_idea else (idea, notation),
        label="Disciplinary Core Idea" if is_idea else "Performance Expectation",
        education_levels=levels,
        set_key=f"grade{'s' if len(levels) > 1 else ''}-{'-'.join(levels).lower()}",
        set_title=f"{NGSS.title}: {course}",
        url=f"{_SITE}/{page}/{notation.lower()}-{_PAGES[match['topic']]}",
    )
