"""Grade levels: their codes, and parsing and writing them as people do.

The codes are the ``educationLevels`` of the Common Standards Project:
https://github.com/commonstandardsproject/api, ``models/standard_set.rb``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

from standards_mcp_catalog.errors import CatalogError

from .notation import plain_text

SCHOOL_GRADES: Final = ("Pre-K", "K", *(f"{number:02}" for number in range(1, 13)))
"""The school grades, the youngest first."""

GRADES: Final = (
    *SCHOOL_GRADES,
    "VocationalTraining",
    "ProfessionalEducation-Development",
    "Graduate",
    "HigherEducation",
    "Undergraduate-UpperDivision",
    "Undergraduate-LowerDivision",
    "AdultEducation",
    "LifeLongLearning",
)
"""All levels, in their order."""

_UNDERGRADUATE: Final = ("Undergraduate-UpperDivision", "Undergraduate-LowerDivision")
# A space matches a space, a hyphen or nothing. "pr" and "kg" are codes of CEDS, which the
# publishers of CASE packages use: https://ceds.ed.gov/element/000100.
_NAMES: Final = (
    (("Pre-K",), "pre k|p|pk|pr|tk|pre school|pre kindergarten|transitional kindergarten"),
    (("K",), "k|kg|kinder|kindergarten|kindergartner|kindergartners|kindergarteners"),
    (("01",), "first|one"),
    (("02",), "second|two"),
    (("03",), "third|three"),
    (("04",), "fourth|four"),
    (("05",), "fifth|five"),
    (("06",), "sixth|six"),
    (("07",), "seventh|seven"),
    (("08",), "eighth|eight"),
    (("09",), "ninth|nine|freshman|freshmen"),
    (("10",), "tenth|ten|sophomore|sophomores"),
    (("11",), "eleventh|eleven|junior|juniors"),
    (("12",), "twelfth|twelve|senior|seniors"),
    (SCHOOL_GRADES[1:], "k12"),
    (SCHOOL_GRADES[1:7], "elementary|elementary school"),
    (SCHOOL_GRADES[1:4], "lower elementary|primary|primary school"),
    (SCHOOL_GRADES[4:7], "upper elementary"),
    (SCHOOL_GRADES[7:10], "middle|middle school|ms"),
    (SCHOOL_GRADES[8:10], "junior high|junior high school"),
    (SCHOOL_GRADES[10:], "high|high school|hs"),
    (("VocationalTraining",), "vocational training|vocational"),
    (
        ("ProfessionalEducation-Development",),
        "professional education development|professional education|professional development",
    ),
    (("Graduate",), "graduate|graduate school"),
    (("HigherEducation",), "higher education"),
    (("Undergraduate-UpperDivision",), "undergraduate upper division|upper division"),
    (("Undergraduate-LowerDivision",), "undergraduate lower division|lower division"),
    (_UNDERGRADUATE, "undergraduate|undergrad"),
    (("HigherEducation", *_UNDERGRADUATE), "college|university"),
    (("AdultEducation",), "adult education|adult|adults"),
    (("LifeLongLearning",), "life long learning|life long"),
)
_PHRASES: Final = {phrase: levels for levels, names in _NAMES for phrase in names.split("|")}
_LEVELS_BY_PHRASE: Final = {name.replace(" ", ""): levels for name, levels in _PHRASES.items()}
_PHRASE_PATTERN: Final = "|".join(sorted(_PHRASES, key=len, reverse=True)).replace(" ", "[ -]?")
_TOKEN: Final = rf"""(?x)
    [\s"'()\[\]]+                                                    # a list written as text
    | -?\b(?:(?:grades?|graders?|gr|levels?)(?:\b|(?=\d))|g(?=\d))[.:\-]*  # filler words
    | (?P<range>-+|\b(?:to|through|thru|until)\b)
    | (?P<also>[,;/&]|\b(?:and|or)\b)
    | (?P<number>0?[1-9]|1[0-2])(?:st|nd|rd|th)?\b
    | \b(?P<phrase>{_PHRASE_PATTERN})\b
    """
_LONGEST_QUOTE = 60


class UnknownGradeError(CatalogError, ValueError):
    """A text names no grade level.

    Attributes:
        text: The rejected text.
        nearest: Names of grades with a similar spelling, the most similar first.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.nearest = _nearest_names(text[:_LONGEST_QUOTE])
        hint = f" Did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(
            f"{text[:_LONGEST_QUOTE]!r} is not a grade.{hint} Give Pre-K, K, a grade from 1 to 12, "
            "a range such as 3-5, a list such as 3, 4, or elementary, middle school, high school; "
            f"beyond school: {', '.join(GRADES[len(SCHOOL_GRADES) :])}."
        )


@lru_cache(256)  # a call parses its grade as an argument and again for the filter
def parse_grades(text: str) -> tuple[str, ...]:
    """Return the grade levels that *text* names, in the order of `GRADES`.

    Codes, numbers (``3``, ``03``, ``3rd grade``, ``third``), ranges (``K-2``, ``grades 3 to 5``),
    lists (``3, 4 and 5``) and school types are understood: primary is K to 2, elementary school
    K to 5, middle school 6 to 8, junior high 7 and 8, high school 9 to 12, college every
    undergraduate level. Transitional kindergarten, the year before kindergarten, is Pre-K.

    Raises:
        UnknownGradeError: A part of *text* is not a grade level.
    """
    try:
        levels = _parse(text)
    except ValueError:
        raise UnknownGradeError(text) from None
    return _in_order(levels)


def normalize_levels(raw: Iterable[str]) -> tuple[str, ...]:
    """Return the levels of a source's data as codes of `GRADES`, in their order, each once.

    Elements with several levels (``"01,02"``, ``"09-12"``, ``"HS"``) are split. Unknown levels
    follow unchanged.
    """
    levels = (level for element in raw for level in _levels_of(element))
    return _in_order(dict.fromkeys(levels))


def grade_order(level: str) -> int:
    """Return the position of *level* in `GRADES`; unknown levels come after the last."""
    return GRADES.index(level) if level in GRADES else len(GRADES)


def spoken_levels(levels: Collection[str]) -> str:
    """Return levels as people write them: ``K-2, 6``. Levels beyond school follow as codes."""
    runs = list[list[str]]()
    for index, level in enumerate(SCHOOL_GRADES):
        if level in levels:
            if not index or SCHOOL_GRADES[index - 1] not in levels:
                runs.append([])
            runs[-1].append(level.removeprefix("0"))
    spans = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join((*spans, *(level for level in levels if level not in SCHOOL_GRADES)))


def _in_order(levels: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(levels, key=grade_order))


def _levels_of(element: str) -> Iterable[str]:
    if levels := _levels_or_none(element):
        return levels
    parts = [part.strip() for part in re.split(r"[,;|.]", element)]
    if not any(map(_levels_or_none, parts)):
        parts = [element.strip()]
    return [level for part in parts if part for level in _levels_or_none(part) or (part,)]


def _levels_or_none(text: str) -> set[str] | None:
    try:
        return _parse(text)
    except ValueError:
        return None


def _parse(text: str) -> set[str]:
    """Return the levels that *text* names; raise ValueError if any part of it is not a level."""
    found: set[str] = set()
    previous: tuple[str, ...] = ()
    is_range = False
    for kind, levels in _tokens(" ".join(plain_text(text).casefold().split()).rstrip(".")):
        if is_range and not levels:
            raise ValueError(kind)
        if levels:
            found.update(_between(previous, levels) if is_range else levels)
        is_range = kind == "range"
        previous = previous if is_range else levels
        if is_range and not previous:
            raise ValueError(kind)
    if is_range or not found:
        raise ValueError(text)
    return found


def _tokens(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the kind and levels of each token except fillers; ``range`` and ``also`` have none."""
    token, position = re.compile(_TOKEN), 0
    while position < len(text):
        match = token.match(text, position)
        if match is None:
            raise ValueError(text[position:])
        position = match.end()
        if kind := match.lastgroup:
            yield kind, _levels_of_token(kind, match[kind])


def _levels_of_token(kind: str, text: str) -> tuple[str, ...]:
    if kind == "number":
        return (f"{int(text):02}",)
    return _LEVELS_BY_PHRASE[re.sub("[ -]", "", text)] if kind == "phrase" else ()


def _between(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    ends = [SCHOOL_GRADES.index(level) for level in (*left, *right)]
    return SCHOOL_GRADES[min(ends) : max(ends) + 1]


def _nearest_names(text: str) -> tuple[str, ...]:
    plain = plain_text(text).casefold()
    correct_words = {word for phrase in _PHRASES for word in phrase.split()}
    misspelt = [word for word in re.findall(r"[^\W\d_]{3,}", plain) if word not in correct_words]
    known = [*_PHRASES, *GRADES]
    close = (difflib.get_close_matches(each, known, n=1) for each in (plain, *misspelt))
    return tuple(dict.fromkeys(name for names in close for name in names))[:3]
