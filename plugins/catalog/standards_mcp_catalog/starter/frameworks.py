"""The frameworks of the starter set, and the place that each code has in its framework.

    CCSS.Math.Content.3.NF             a domain, the root
    CCSS.Math.Content.3.NF.A           a cluster
    CCSS.Math.Content.3.NF.A.2         a standard
    CCSS.Math.Content.3.NF.A.2a        a component of it
    CCSS.Math.Content.HSF-LE.A.1a      the same in high school
    CCSS.Math.Practice.MP1             a mathematical practice, alone
    CCSS.ELA-Literacy.RL.3.1           a standard, the root
    CCSS.ELA-Literacy.L.9-10.1a        a component of one
    CCSS.ELA-Literacy.CCRA.R.1         an anchor standard, for all grades
    MS-PS1             NGSS: a core idea in a grade or band, the root
    MS-PS1-1           a performance expectation
    4-ESS2-1           the same in grade 4
    3-5-ETS1-1         engineering design, which has bands in elementary school, too
    1A-AP-08           CSTA 2017: level 1A, algorithms and programming, number 8
    D2.Eco.1.K-2       C3: dimension 2, economics, indicator 1, for kindergarten to grade 2
    D4.3.9-12          C3: dimension 4, indicator 3, for grades 9 to 12

These pages describe them:
https://www.thecorestandards.org/developers-and-publishers/,
https://www.nextgenscience.org/understanding-standards/understanding-standards,
https://csteachers.org/k12standards/ and https://www.socialstudies.org/standards/c3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES, parse_grades


class Framework(NamedTuple):
    """A published document and its publisher.

    Attributes:
        document_id: As the Achievement Standards Network names it, or the name of the framework.
        valid: The year of the edition.
        normalized_subject: As the Common Standards Project groups the subject, if it does.
        title: The beginning of the titles of its standard sets.
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


_SITE: Final = "https://www.thecorestandards.org"
_CONTENT: Final = "CCSS.Math.Content."
_PRACTICE: Final = "CCSS.Math.Practice."
_LITERACY: Final = "CCSS.ELA-Literacy."
_MATH_CODE: Final = re.compile(
    r"(?P<domain>(?P<grade>[K1-8])\.[A-Z]+|HS[A-Z]-[A-Z]+)"
    r"(\.(?P<cluster>[A-Z])(\.(?P<number>\d+)(?P<part>[a-z])?)?)?"
)
_LITERACY_CODE: Final = re.compile(
    r"(?P<strand>[A-Z]+)\.(?P<grades>K|\d+|\d+-\d+|[A-Z]+)\.(?P<number>\d+)(?P<part>[a-z])?"
)
_MATH_LABELS: Final = ("Domain", "Cluster", "Standard", "Component")
_LITERACY_LABELS: Final = ("Standard", "Component")
_SCHOOL: Final = SCHOOL_GRADES[1:]
_CATEGORIES: Final = {
    "HSN": "Number and Quantity",
    "HSA": "Algebra",
    "HSF": "Functions",
    "HSG": "Geometry",
    "HSS": "Statistics and Probability",
}
_SUBJECT_STRANDS: Final = {
    "RH": "Literacy in History/Social Studies",
    "RST": "Literacy in Science and Technical Subjects",
    "WHST": "Writing in History/Social Studies, Science and Technical Subjects",
}


_COMMON_CORE: Final = "67810E9EF6944F9383DCC602A3484C23"
_TITLE: Final = "Common Core State Standards"

MATHEMATICS: Final = Framework(
    jurisdiction_id=_COMMON_CORE,
    jurisdiction_title=_TITLE,
    document_id="D10003FB",
    valid="2010",
    subject="Mathematics",
    normalized_subject="Math",
    title="Common Core Mathematics",
)
LITERACY: Final = Framework(
    jurisdiction_id=_COMMON_CORE,
    jurisdiction_title=_TITLE,
    document_id="D10003FC",
    valid="2010",
    subject="English Language Arts",
    normalized_subject="English",
    title="Common Core English Language Arts",
)


def common_core_place(notation: str) -> Place | None:
    """Return the place of a code, or None if it is not a Common Core code."""
    if notation.startswith(_PRACTICE):
        return _practice(notation)
    if match := _MATH_CODE.fullmatch(notation.removeprefix(_CONTENT)):
        return _mathematics(match)
    if match := _LITERACY_CODE.fullmatch(notation.removeprefix(_LITERACY)):
        return _literacy(match)
    return None


def _practice(notation: str) -> Place:
    name = notation.removeprefix(_PRACTICE)
    return Place(
        framework=MATHEMATICS,
        path=(notation,),
        label="Mathematical Practice",
        education_levels=_SCHOOL,
        set_key="practices",
        set_title=f"{MATHEMATICS.title}: Practices",
        short=(name, f"MP.{name[2:]}"),
        url=f"{_SITE}/Math/Practice/{name}/",
    )


def _mathematics(match: re.Match[str]) -> Place:
    names = ("domain", "cluster", "number", "part")
    path = [match[0][: match.end(name)] for name in names if match[name]]
    if match["grade"]:
        levels = parse_grades(match["grade"])
        set_key, course = f"grade-{levels[0].lower()}", grade_title(match["grade"])
    else:
        levels, category = parse_grades("9-12"), _CATEGORIES[match["domain"][:3]]
        set_key = f"high-school-{category.lower().replace(' ', '-')}"
        course = f"High School, {category}"
    return Place(
        framework=MATHEMATICS,
        path=tuple(_CONTENT + code for code in path),
        label=_MATH_LABELS[len(path) - 1],
        education_levels=levels,
        set_key=set_key,
        set_title=f"{MATHEMATICS.title}: {course}",
        short=_short_forms(match),
        url=_mathematics_url(match),
    )


def _short_forms(match: re.Match[str]) -> tuple[str, ...]:
    """Return the code without its prefix and, for a standard, without its cluster letter too."""
    domain, number, part = match.group("domain", "number", "part")
    forms = [match[0]]
    if number:
        short = domain.removeprefix("HS").replace("-", ".")
        forms.append(".".join(filter(None, (short, number, part))))
    return tuple(forms)


def _mathematics_url(match: re.Match[str]) -> str:
    """Return the page of the official wording; for a cluster, the page of its domain."""
    parts = match["domain"].replace("-", ".").split(".")
    if match["number"]:
        parts.extend(filter(None, match.group("cluster", "number", "part")))
    return f"{_SITE}/Math/Content/{'/'.join(parts)}/"


def _literacy(match: re.Match[str]) -> Place:
    strand, grades, number, part = match.group("strand", "grades", "number", "part")
    code = f"{strand}.{grades}.{number}"
    path = (code, code + part) if part else (code,)
    set_key, course = _literacy_set(strand, grades)
    page = "/".join(filter(None, (strand, grades, number, part)))
    return Place(
        framework=LITERACY,
        path=tuple(_LITERACY + each for each in path),
        label=_LITERACY_LABELS[len(path) - 1],
        education_levels=_SCHOOL if strand == "CCRA" else parse_grades(grades),
        set_key=set_key,
        set_title=f"{LITERACY.title}: {course}",
        short=(f"{code}.{part}",) if part else (code,),
        url=f"{_SITE}/ELA-Literacy/{page}/",
    )


def _literacy_set(strand: str, grades: str) -> tuple[str, str]:
    if strand == "CCRA":
        return "anchor-standards", "Anchor Standards"
    levels = "-".join(parse_grades(grades)).lower()
    key = f"grades-{levels}" if "-" in grades else f"grade-{levels}"
    if area := _SUBJECT_STRANDS.get(strand):
        return f"{key}-{strand.lower()}", f"{area}, {grade_title(grades)}"
    return key, grade_title(grades)


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
