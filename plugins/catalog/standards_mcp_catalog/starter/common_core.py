"""What the codes of the Common Core say: parents, grades, standard set, short forms, address.

    CCSS.Math.Content.3.NF             a domain, the root
    CCSS.Math.Content.3.NF.A           a cluster
    CCSS.Math.Content.3.NF.A.2         a standard
    CCSS.Math.Content.3.NF.A.2a        a component of it
    CCSS.Math.Content.HSF-LE.A.1a      the same in high school
    CCSS.Math.Practice.MP1             a mathematical practice, alone
    CCSS.ELA-Literacy.RL.3.1           a standard, the root
    CCSS.ELA-Literacy.L.9-10.1a        a component of one
    CCSS.ELA-Literacy.CCRA.R.1         an anchor standard, for all grades

https://www.thecorestandards.org/developers-and-publishers/ describes them.
"""

from __future__ import annotations

import re
from typing import Final

from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES, parse_grades

from .frameworks import Framework, Place, grade_title

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
    domain, cluster, number, part = match.group("domain", "cluster", "number", "part")
    path = [domain]
    if cluster:
        path.append(f"{domain}.{cluster}")
    if number:
        path.append(f"{domain}.{cluster}.{number}")
    if part:
        path.append(match[0])
    if match["grade"]:
        levels = parse_grades(match["grade"])
        set_key, course = f"grade-{levels[0].lower()}", grade_title(match["grade"])
    else:
        levels, category = parse_grades("9-12"), _CATEGORIES[domain[:3]]
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
    """Return the page of the official wording; a cluster stands on its domain's page."""
    parts = match["domain"].replace("-", ".").split(".")
    if match["number"]:
        parts.extend(filter(None, match.group("cluster", "number", "part")))
    return f"{_SITE}/Math/Content/{'/'.join(parts)}/"


def _literacy(match: re.Match[str]) -> Place:
    strand, grades, number, part = match.group("strand", "grades", "number", "part")
    whole = f"{_LITERACY}{strand}.{grades}.{number}"
    path = (whole, whole + part) if part else (whole,)
    set_key, course = _literacy_set(strand, grades)
    code = f"{strand}.{grades}.{number}"
    page = "/".join(filter(None, (strand, grades, number, part)))
    return Place(
        framework=LITERACY,
        path=path,
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
