"""The grade and the subject that a text names beyond doubt, as teachers write them.

A word in another sense must not narrow a search: papers are graded, a period is the fifth, and a
lesson goes beyond third grade. So only forms with a clear reading count, and a text that names
more than five grades names none.
"""

from __future__ import annotations

import re
from typing import Final

from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES, UnknownGradeError, parse_grades
from standards_mcp_catalog.vocabulary.notation import plain_text

_MOST_LEVELS: Final = 5
_ORDINAL: Final = (
    "(?:1st|2nd|3rd|(?:[4-9]|1[0-2])th|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
    "|tenth|eleventh|twelfth)"
)
_NUMBER: Final = "(?:k|0?[1-9]|1[0-2])"
_TO: Final = r"\s*(?:[-,&/]|to|through|and|or)\s*"
_LEARNERS: Final = "(?:students?|learners?|pupils|kids|children|class(?:es|room)?|course|lesson)"
_GRADED: Final = "(?:papers?|essays?|tests?|quiz(?:zes)?|assignments?|exams?|projects?|points?|%)"
_COURSE: Final = "(?:math|algebra|geometry|biology|chemistry|physics|english|history|science)"
_GRADE: Final = re.compile(
    rf"""
    \b(?:
      # "Grade 5", "grades K-2", "Gr. 4", "Grade level: 7"; teachers grade 5 papers, too.
      gr(?:ades?|\.)?(?:\ level)?(?:\(s\))?[ :-]*{_NUMBER}(?:{_TO}{_NUMBER})*\b(?!\s*{_GRADED})
      # "4th graders", "fifth-grade", "5th and 6th grade"; a reading level is not a class.
    | {_ORDINAL}(?:{_TO}{_ORDINAL})*[\s-]*grade(?:rs?|s)?\b(?![\s-]reading[\s-]level)
    | (?:pre[ -]?)?kindergart(?:en(?:ers?)?|ners?)\b
    | k-(?:0?[1-9]|1[0-2])\b
    | pre-?k(?=\ {_LEARNERS})
    | (?:elementary|middle|high)[ -]school(?:ers\b|(?=[ -](?:{_LEARNERS}|{_COURSE})\b))
    | (?<=\bin\ )(?:elementary|middle|high)\ school\b
    )
    """,
    re.VERBOSE,
)
# Lesson plans name the previous grade more often than their own.
_LEFT_BEHIND: Final = re.compile(
    r"(?:\b(?:not|never|below|above|beyond|before|after|until|since|than|prior to|past|previous"
    r"|from|next|last|entering|leaving)(?: (?:for|in|the|to|of))?"
    r"|\b(?:learned|learnt|introduced|taught|studied|seen|done|developed|covered|met|begun|work)"
    r"(?: in| during))(?: the)? $"
)
_IN_THE_PAST: Final = re.compile(
    r",? (?:the )?(?:students|learners|children|they|we|you)"
    r" (?:\w+ed|had|have|learnt|saw|began|met)\b"
)
_SUBJECTS: Final = "|".join(
    map(
        re.escape,
        (
            "mathematics",
            "maths",
            "math",
            "english language arts",
            "language arts",
            "ela",
            "computer science",
            "social studies",
            "science",
            "biology",
            "chemistry",
            "physics",
            "history",
            "geography",
            "civics",
            "art",
            "music",
            "health",
            "physical education",
        ),
    )
)
_SUBJECT: Final = re.compile(
    rf"""
      \bsubject[ :-]+({_SUBJECTS})\b
    | \b({_SUBJECTS}|english)
      (?=[ -](?:class(?:es|room)?|lessons?|unit|standards?|teachers?|curriculum|worksheets?
                |homework|block|course|students?|lab)\b)
      # "for math, grade 3", and not "in science fiction".
    | \b(?:for|in)\ ({_SUBJECTS})(?=[^\w\s-]|$)
    """,
    re.VERBOSE,
)


def named_grades(text: str) -> tuple[str, ...]:
    """Return the levels of the grades that *text* names, in their order, or nothing."""
    plain = _plain(text)
    found = set[str]()
    for match in _GRADE.finditer(plain):
        before = _LEFT_BEHIND.search(plain, max(0, match.start() - 30), match.start())
        if not before and not _IN_THE_PAST.match(plain, match.end()):
            found.update(_levels(match[0]))
    if len(found) > _MOST_LEVELS:
        return ()
    return tuple(level for level in SCHOOL_GRADES if level in found)


def named_subject(text: str) -> str:
    """Return the subject that *text* names in its own words, or an empty string.

    A text that names several names none.
    """
    found = {next(filter(None, match.groups())) for match in _SUBJECT.finditer(_plain(text))}
    return found.pop() if len(found) == 1 else ""


def _plain(text: str) -> str:
    return " ".join(plain_text(text).casefold().split())


def _levels(words: str) -> tuple[str, ...]:
    try:
        return parse_grades(re.sub(r"schoolers$", "school", words).replace("(s)", ""))
    except UnknownGradeError:
        return ()
