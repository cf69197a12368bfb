"""Read the grade, the subject and the publisher that a text names beyond doubt, and its topic.

A word in another sense must not narrow a search: papers are graded, a period is the fifth, and a
lesson goes beyond third grade. So only forms with a clear reading count, and a text that names
more than five grades names none, unless they are the range of a school, such as K-5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES, UnknownGradeError, parse_grades
from standards_mcp_catalog.vocabulary.names import POSTAL_CODES, STATES, place_named
from standards_mcp_catalog.vocabulary.notation import plain_text
from standards_mcp_catalog.vocabulary.subjects import is_subject

_MOST_LEVELS: Final = 5
_MOST_IN_A_RANGE: Final = 7  # a school has K-5 or 6-12; more are all grades
_ORDINAL: Final = (
    "(?:1st|2nd|3rd|(?:[4-9]|1[0-2])th|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
    "|tenth|eleventh|twelfth)"
)
_NUMBER: Final = "(?:k|0?[1-9]|1[0-2])"
_RANGE: Final = r"\s*(?:[-,&/]|to|through|and|or)\s*"
_LEARNERS: Final = "(?:students?|learners?|pupils|kids|children|class(?:es|room)?|course|lesson)"
_GRADED: Final = "(?:papers|essays|tests|quizzes|assignments|exams|projects|points|%)"
# "grade 4, 2-digit numbers", "grade 3, 1/2 and 1/4", "grade 1, 10 more or 10 less"
_NO_AMOUNT: Final = r"(?!-[a-z]|/\d|\s+(?:digits?|steps?|more|less|times)\b)"
_NOT_OPEN_ENDED: Final = r"(?!\s*(?:\+|(?:or|and)\ (?:higher|up|above|older|below)\b))"
_COURSE: Final = "(?:math|algebra|geometry|biology|chemistry|physics|english|history|science)"
_GRADE: Final = re.compile(
    rf"""
    \b(?:
      # "Grade 5", "grades K-2", "Gr. 4", "Grade level: 7"; teachers grade 5 papers, too.
      gr(?:ades?|\.)?(?:\ level)?(?:\(s\))?[ :-]*{_NUMBER}\b(?:{_RANGE}{_NUMBER}\b{_NO_AMOUNT})*
      (?!\s*{_GRADED}){_NOT_OPEN_ENDED}
      # "4th graders", "fifth-grade", "5th and 6th grade"; a reading level is not a class.
    | {_ORDINAL}(?:{_RANGE}{_ORDINAL})*[\s-]*grade(?:rs?|s)?\b
      (?![\s-](?:reading[\s-]level|budd(?:y|ies)))
    | (?:pre[ -]?)?kindergart(?:en(?:ers?)?|ners?)\b
    | pre-?school(?:ers?)?\b
    | k-(?:0?[1-9]|1[0-2])\b
    | pre-?k\b
    | (?:elementary|middle|high)[ -]school(?:ers\b|(?=[ -](?:{_LEARNERS}|{_COURSE})\b))
    | (?<=\bin\ )(?:elementary|middle|high)\ school\b
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Words before a grade that is not the lesson's own: lesson plans often name the previous grade.
_OTHER_GRADE_BEFORE: Final = re.compile(
    r"(?:\b(?:not|never|below|above|beyond|before|after|until|since|than|prior to|past|previous"
    r"|from|next|last|entering|leaving)(?: (?:for|in|the|to|of))?"
    r"|\b(?:learned|learnt|introduced|taught|studied|seen|done|developed|covered|met|begun|work)"
    r"(?: in| during))(?: the)? $",
    re.IGNORECASE,
)
_PAST_TENSE_AFTER: Final = re.compile(
    r",? (?:the )?(?:students|learners|children|they|we|you)"
    r" (?:(?!need|feed)\w+ed|had|have|learnt|saw|began|met)\b",
    re.IGNORECASE,
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
      (?=[ -](?:class(?:es|room)?|lessons|unit|standards|curriculum|worksheets?
                |homework|block|course|lab)\b)
      # "a music lesson about beats", and not "each music lesson costs $15"
    | (?:^|[.,;:]\ |\b(?:an?|my|our|for|this)\ )({_SUBJECTS}|english)(?=[ -]lesson\b)
      # "for math, grade 3", and not "in science fiction".
    | \bfor\ ({_SUBJECTS})(?=[^\w\s-]|$)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# "4th grade science: weather", and not "4th grade science fiction" or "4th grade math and science".
_AFTER_GRADE: Final = re.compile(
    rf"[\s,:-]*({_SUBJECTS})\b(?!-)(?!\s*(?:and|or|[/&+]|fiction|history|fairs?|museums?)\b)"
    r"(?!\s*[/&+])",
    re.IGNORECASE,
)
# A subject at the beginning counts before a grade, too: "math grade 5".
_BEFORE_GRADE: Final = re.compile(rf"(?:^|[.,;:]\ |\bfor\ )({_SUBJECTS})[\s,:-]+$", re.IGNORECASE)
_STATES: Final = "|".join(re.escape(name) for name in STATES)
# In capital letters: "NY standards". Two of them are words, too.
_CODES: Final = "|".join(code for code in POSTAL_CODES if code not in ("IN", "OR"))
_TOPIC_FOLLOWS: Final = r"(?:\s+(?:about|covering|for|of|on)\b)?"
_PUBLISHER: Final = re.compile(
    rf"""
      \b(?:(?:{_STATES})\ )?
      (TEKS|NGSS|CCSS|common\ core|C3\ framework|CSTA|(?-i:SOLs?))\b
      (?:\ state)?(?:\ standards?)?{_TOPIC_FOLLOWS}
    | \b({_STATES}|(?-i:{_CODES}|NYS))(?:'s)?(?:\ (?:state|academic|learning|content
        |next\ generation|math(?:ematics)?|science|ela|reading|writing
        |social\ studies|history)){{0,3}}\ standards\b
      (?:\ of\ (?:excellence|learning))?(?!\ of\ living){_TOPIC_FOLLOWS}
    | ((?-i:B\.E\.S\.T\.|BEST(?=\ standards)))(?:\ standards?)?{_TOPIC_FOLLOWS}
    | (?<!living\ )(?<!emission\ )(?<!quality\ )\bstandards\ (?:of|for|in|from)\ ({_STATES})\b
      {_TOPIC_FOLLOWS}
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Next to a grade or a subject, the name of a state selects its standards: "Ohio 4th grade
# fractions", "5th grade science, Texas". Elsewhere it may be the topic: "the geography of Texas".
_STATE_FIRST: Final = re.compile(rf"({_STATES}),?\ $", re.IGNORECASE)
_STATE_LAST: Final = re.compile(rf"[\s,:-]+({_STATES})\s*[.?!]?$", re.IGNORECASE)
_PLACES: Final = {
    "tek": "Texas",  # the keys are without a final s
    "sol": "Virginia",
    "ny": "New York",
    "best": "Florida",
    "b.e.s.t.": "Florida",
}
# Words that introduce a grade or a subject, and are removed with it.
_LEADING: Final = re.compile(
    r"(?:^|(?<=[\s,;:(-]))(?:(?:for|in|with|of|to|at|from|and|my|our|the|a|an|some|any)\s+)+$",
    re.IGNORECASE,
)
_FOLLOWING: Final = re.compile(
    rf"(?:'s|\u2019s)?(?:[\s-]+(?:{_LEARNERS}|level|lessons|unit(?=\s*(?:[,:;.]|$)|\s+(?:about|on|of|covering)\b)"
    r"|standards|curriculum|worksheets?|homework|block|lab)\b(?:\s+(?:about|on|of|covering)\b)?)*[\s,;:.)]*",
    re.IGNORECASE,
)
_LEADING_MARKS: Final = " \t,;:.-()"


@dataclass(frozen=True, slots=True)
class NamedScope:
    """The grades, the subject and the publisher that a text names, and its topic.

    Attributes:
        levels: The codes of the named grades, in their order.
        subject: The named subject, in the words of the text, or an empty string.
        publisher: The named state or framework, such as ``Texas`` for TEKS, or an empty string.
        topic: The text without the words for grades, subject and publisher.
    """

    levels: tuple[str, ...]
    subject: str
    publisher: str
    topic: str


def read_named(text: str, *, reads_grade: bool = True, reads_subject: bool = True) -> NamedScope:
    """Return the grades, the subject and the publisher that a text names, and its topic.

    If a text names several subjects, none counts; the same for publishers. If the text has no other
    words, the topic is the whole text.

    Args:
        reads_grade: False to leave grades in the topic.
        reads_subject: False to leave subjects in the topic.
    """
    plain = " ".join(plain_text(text).split())
    grades = list(_grades(plain)) if reads_grade else []
    levels = {level for _, named in grades for level in named}
    if len(levels) > (_MOST_IN_A_RANGE if len(grades) == 1 else _MOST_LEVELS):
        grades, levels = [], set[str]()
    grade_spans = [span for span, _ in grades]
    subjects = list(_subjects(plain, grade_spans)) if reads_subject else []
    names = {name for _, name in subjects}
    if len(names) != 1:
        subjects = []
    publishers = list(_publishers(plain, [*grade_spans, *(span for span, _ in subjects)]))
    places = {place for _, place in publishers}
    if len(places) != 1:
        publishers = []
    spans = [*grade_spans, *(span for span, _ in (*subjects, *publishers))]
    topic = (_cut_out(plain, spans) if spans else "") or text
    subject = names.pop() if subjects else ""
    if reads_subject and not subject and is_subject(topic):  # "PE", "algebra"
        subject = topic
    return NamedScope(
        tuple(level for level in SCHOOL_GRADES if level in levels),
        subject,
        places.pop() if publishers else "",
        topic,
    )


_Span = tuple[int, int]


def _grades(plain: str) -> Iterable[tuple[_Span, tuple[str, ...]]]:
    for match in _GRADE.finditer(plain):
        if _OTHER_GRADE_BEFORE.search(plain, max(0, match.start() - 30), match.start()):
            continue
        levels = _levels(match[0].casefold())
        if levels and not _PAST_TENSE_AFTER.match(plain, match.end()):
            yield match.span(), levels


def _subjects(plain: str, grades: Iterable[_Span]) -> Iterable[tuple[_Span, str]]:
    for match in _SUBJECT.finditer(plain):
        yield match.span(), next(filter(None, match.groups())).casefold()
    for start, end in grades:
        if after := _AFTER_GRADE.match(plain, end):
            yield after.span(), after[1].casefold()
        if before := _BEFORE_GRADE.search(plain, 0, start):
            yield before.span(1), before[1].casefold()


def _publishers(plain: str, scope_spans: Iterable[_Span]) -> Iterable[tuple[_Span, str]]:
    """Yield the publishers of a text; *scope_spans* are the spans of its grades and subjects."""
    for match in _PUBLISHER.finditer(plain):
        name = next(filter(None, match.groups()))
        yield (
            match.span(),
            _PLACES.get(name.casefold().rstrip("s"), "") or place_named(name) or name,
        )
    for start, end in scope_spans:
        if before := _STATE_FIRST.fullmatch(plain, 0, start):
            yield before.span(1), place_named(before[1]) or before[1]
        if after := _STATE_LAST.match(plain, end):
            yield after.span(1), place_named(after[1]) or after[1]


def _cut_out(plain: str, spans: Iterable[_Span]) -> str:
    """Cut spans out of a text, with the words that introduce them and the learners after them."""
    kept, start = list[str](), 0
    for begin, end in sorted(spans):
        if begin < start:
            start = max(start, end)
            continue
        kept.append(_LEADING.sub("", plain[start:begin]))
        following = _FOLLOWING.match(plain, end)
        start = following.end() if following else end
    kept.append(plain[start:])
    parts = [part.strip(_LEADING_MARKS) for part in kept]
    return ", ".join(part for part in parts if part)


def _levels(words: str) -> tuple[str, ...]:
    try:
        return parse_grades(re.sub(r"schoolers$", "school", words).replace("(s)", ""))
    except UnknownGradeError:
        return ()
