"""Find the next and previous grade, and the continuation of a strand there.

The name of a strand is the beginning of its codes, in the spelling of `canonical_key`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES
from standards_mcp_catalog.vocabulary.notation import canonical_key

from .bands import next_band

# The domains that continue a domain which the next grade does not have, after the Progressions for
# the Common Core State Standards in Mathematics: https://commoncoretools.me/category/progressions/
_NEXT_DOMAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "CC": ("OA", "NBT"),
    "G": ("NF",),  # equal shares of shapes in grade 2 become fractions in grade 3
    "OA": ("EE",),
    "NBT": ("NS",),
    "NF": ("NS", "RP"),
    "MD": ("G", "SP"),
    "RP": ("F", "EE"),
}
_DECIMALS: Final = {("NBT", "4"): ("NF",), ("NF", "5"): ("NBT",)}
"""Additional domains in a grade: decimals belong to NF in grade 4, and to NBT in grade 5."""
_CATEGORIES: Final = {"NS": "N", "EE": "AN", "F": "F", "G": "G", "SP": "S"}
"""The conceptual categories of high school that continue a domain of grade 8."""
_ALL_CATEGORIES: Final = frozenset("".join(_CATEGORIES.values()))
_DOMAINS: Final[Mapping[str, str]] = {
    "CC": "K", "OA": "K12345", "NBT": "K12345", "NF": "345", "MD": "K12345", "G": "K12345678",
    "RP": "67", "NS": "678", "EE": "678", "F": "8", "SP": "678",
}  # fmt: skip
"""The domains before high school, and the grades that have them."""
_MATH_CODE: Final = re.compile(rf"(?:K|[1-8])\.(?P<domain>{'|'.join(_DOMAINS)})(?:\..*)?")
_HIGH_SCHOOL_CODE: Final = re.compile(r"(?P<category>[NAFGS])\.[A-Z]+(?:\..*)?")
_LITERACY_CODE: Final = re.compile(
    r"(?P<strand>RL|RI|RF|RH|RST|WHST|W|SL|L)\.(?:K|\d+|\d+-\d+)\.(?P<number>\d+)(?P<part>\..+)?"
)
# Up to grade 5, history and science are part of reading and writing. This is for previous grades
# only: the next grade of RI.5.1 is RI.6.1.
_SUBJECT_STRANDS: Final[Mapping[str, str]] = {"RH": "RI", "RST": "RI", "WHST": "W"}
"""Strands for history and science, and the strands of their standards up to grade 5, by number."""
_UP_TO_GRADE_5: Final = SCHOOL_GRADES[: SCHOOL_GRADES.index("06")]
_HIGH_SCHOOL_GRADES: Final = SCHOOL_GRADES[10:]


@dataclass(frozen=True, slots=True)
class Continuation:
    """The continuation of a standard in another grade.

    Attributes:
        code: The code of the same standard in that grade, or None if codes do not show it.
        strands: Alternatives, the narrowest first; each has the beginnings of the codes of the
            strands that continue the standard.
        note: The reason for another strand or for a missing one, if it is known.
        where: The strand and its grades or level, if *strands* include the grades, as for NGSS and
            CSTA, whose strands do not continue in every grade.
    """

    code: str | None = None
    strands: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    where: str = ""


def neighbouring_grade(levels: Collection[str], step: int) -> str | None:
    """Return the grade after the last of *levels* (*step* 1) or before the first (-1).

    The result is None before the first grade, after the last, and for levels beyond school.
    """
    places = sorted(SCHOOL_GRADES.index(each) for each in levels if each in SCHOOL_GRADES)
    if not places:
        return None
    place = (places[-1] if step > 0 else places[0]) + step
    return SCHOOL_GRADES[place] if 0 <= place < len(SCHOOL_GRADES) else None


def grade_name(level: str) -> str:
    """Return the name of a grade in a sentence: ``grade 3``, ``kindergarten``."""
    names = {"K": "kindergarten", "Pre-K": "pre-kindergarten"}
    return names.get(level, f"grade {int(level)}" if level.isdecimal() else level)


def grades_name(levels: Sequence[str]) -> str:
    """Return the name of several grades in a sentence: ``grade 9 to grade 12``."""
    first, *others = levels or ("no grade",)
    return f"{grade_name(first)} to {grade_name(others[-1])}" if others else grade_name(first)


def strand_name(strand: str) -> str:
    """Return a strand as its codes begin: with HS for high school mathematics."""
    return f"HS{strand}" if strand in _ALL_CATEGORIES else strand


def continuation(code: str, level: str, step: int) -> Continuation:
    """Return the continuation of a code in *level*, the next (*step* 1) or previous grade (-1)."""
    key = canonical_key(code)
    if match := _LITERACY_CODE.fullmatch(key):
        return _literacy(match["strand"], match["number"], match["part"], level)
    if match := _MATH_CODE.fullmatch(key):
        domains = tuple(_domains(match["domain"], level, step))
        return Continuation(strands=(domains,) if domains else ())
    if (match := _HIGH_SCHOOL_CODE.fullmatch(key)) and level == "08":
        category = match["category"]
        before = (f"8.{each}" for each, names in _CATEGORIES.items() if category in names)
        return Continuation(strands=(tuple(before),))
    if band := next_band(code, step):
        return Continuation(band.code, (band.strands,) if band.strands else (), where=band.name)
    return Continuation()


def _literacy(strand: str, number: str, part: str | None, level: str) -> Continuation:
    grade, note = _literacy_grade(strand, level), ""
    if strand in _SUBJECT_STRANDS and level in _UP_TO_GRADE_5:
        before = _SUBJECT_STRANDS[strand]
        note = f"{strand} begins in grade 6; up to grade 5 its standards belong to {before}."
        narrow, wide = f"{before}.{grade}.{number}", f"{before}.{grade}"
        return Continuation(strands=((narrow,), (wide,)), note=note)
    if strand == "RF" and level not in _UP_TO_GRADE_5:
        note = "RF, the foundational skills, ends with grade 5."
    same = f"{strand}.{grade}.{number}"
    # Letters count the parts of one grade: a of grade 4 need not be a of grade 5.
    return Continuation(None if part else same, ((same,), (f"{strand}.{grade}",)), note)


def _literacy_grade(strand: str, level: str) -> str:
    if level in ("09", "10"):
        return "9-10"
    if level in ("11", "12"):
        return "11-12"
    if strand in _SUBJECT_STRANDS and level in ("06", "07", "08"):
        return "6-8"
    return level.removeprefix("0")


def _domains(domain: str, level: str, step: int) -> Iterator[str]:
    if level in _HIGH_SCHOOL_GRADES:
        yield from _CATEGORIES.get(domain, "")
    earlier = [each for each, later in _NEXT_DOMAINS.items() if domain in later]
    others = _NEXT_DOMAINS.get(domain, ()) if step > 0 else earlier
    grade = level.removeprefix("0")
    if grade in _DOMAINS[domain]:
        others = (domain, *_DECIMALS.get((domain, grade), ()))
    yield from (f"{grade}.{each}" for each in others if grade in _DOMAINS[each])
