"""The frameworks of the starter set: what the codes of NGSS, CSTA and C3 say.

    MS-PS1             NGSS: a core idea in a grade or band, the root
    MS-PS1-1           a performance expectation
    4-ESS2-1           the same in grade 4
    3-5-ETS1-1         engineering design, which has bands in elementary school, too
    1A-AP-08           CSTA 2017: level 1A, algorithms and programming, number 8
    D2.Eco.1.K-2       C3: dimension 2, economics, indicator 1, for kindergarten to grade 2
    D4.3.9-12          C3: dimension 4, indicator 3, for grades 9 to 12

These pages describe them:
https://www.nextgenscience.org/understanding-standards/understanding-standards,
https://csteachers.org/k12standards/ and https://www.socialstudies.org/standards/c3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from standards_mcp_catalog.vocabulary.grades import parse_grades


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
    """The place of a code in its framework.

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
    """Return the words of a title for grades such as ``K``, ``3`` or ``9-10``."""
    if grades == "K":
        return "Kindergarten"
    return f"Grades {grades}" if "-" in grades else f"Grade {grades}"


_NGSS_SITE: Final = "https://www.nextgenscience.org"
_NGSS_CODE: Final = re.compile(
    r"(?P<idea>(?P<grades>K-2|3-5|K|[1-5]|MS|HS)-(?P<topic>[A-Z]+\d))(-\d+)?"
)
_NGSS_SCHOOLS: Final = {"MS": ("6-8", "Middle School"), "HS": ("9-12", "High School")}
# The names of the core ideas as the site writes them in its addresses.
_NGSS_PAGES: Final = {
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


def ngss_place(notation: str) -> Place | None:
    """Return the place of a code, or None if it is not an NGSS code."""
    match = _NGSS_CODE.fullmatch(notation)
    if match is None or match["topic"] not in _NGSS_PAGES:
        return None
    idea, grades = match["idea"], match["grades"]
    is_idea = notation == idea
    grades, course = _NGSS_SCHOOLS.get(grades) or (grades, grade_title(grades))
    levels = parse_grades(grades)
    page = "dci-arrangement" if is_idea else "pe"
    return Place(
        framework=NGSS,
        path=(idea,) if is_idea else (idea, notation),
        label="Disciplinary Core Idea" if is_idea else "Performance Expectation",
        education_levels=levels,
        set_key=f"grade{'s' if len(levels) > 1 else ''}-{'-'.join(levels).lower()}",
        set_title=f"{NGSS.title}: {course}",
        url=f"{_NGSS_SITE}/{page}/{notation.lower()}-{_NGSS_PAGES[match['topic']]}",
    )


_CSTA_CODE: Final = re.compile(r"(?P<level>1A|1B|2|3A|3B)-(CS|NI|DA|AP|IC)-\d\d")
_CSTA_GRADES: Final = {"1A": "K-2", "1B": "3-5", "2": "6-8", "3A": "9-10", "3B": "11-12"}

CSTA: Final = Framework(
    jurisdiction_id="CSTA",
    jurisdiction_title="CSTA",
    document_id="2017",
    valid="2017",
    subject="Computer Science",
    normalized_subject=None,
    title="CSTA Computer Science",
)


def csta_place(notation: str) -> Place | None:
    """Return the place of a code, or None if it is not a CSTA code."""
    match = _CSTA_CODE.fullmatch(notation)
    if match is None:
        return None
    level = match["level"]
    grades = _CSTA_GRADES[level]
    return Place(
        framework=CSTA,
        path=(notation,),
        label="Standard",
        education_levels=parse_grades(grades),
        set_key=f"level-{level.lower()}",
        set_title=f"{CSTA.title}: Level {level}, Grades {grades}",
        url="https://csteachers.org/k12standards/",
    )


_C3_CODE: Final = re.compile(
    r"(?P<part>D[134]|D2\.(Civ|Eco|Geo|His))\.\d+\.(?P<grades>K-2|3-5|6-8|9-12)"
)
_C3_PARTS: Final = {
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


def c3_place(notation: str) -> Place | None:
    """Return the place of a code, or None if it is not a code of the C3 Framework."""
    match = _C3_CODE.fullmatch(notation)
    if match is None:
        return None
    part, grades = match["part"], match["grades"]
    return Place(
        framework=C3,
        path=(notation,),
        label="Indicator",
        education_levels=parse_grades(grades),
        set_key=f"{part.lower().replace('.', '-')}-grades-{grades.lower()}",
        set_title=f"{C3.title}: {_C3_PARTS[part]}, Grades {grades}",
        url="https://www.socialstudies.org/standards/c3",
    )
