"""Match names of subjects, as people write them, with the subjects of a catalog.

Every source has its own names of subjects: ``Mathematics``, ``Common Core Mathematics`` and
``Math`` mean the same to a teacher.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from .names import LONGEST_NAME
from .notation import plain_text

# One family of subjects on each line: names of the whole family, then names of its parts. Of
# overlapping phrases the longest counts, so that computer science is not a science.
_FAMILIES: Final = """\
math, maths, mathematics: algebra, geometry, calculus, statistics, probability, arithmetic
english, ela, elar, language arts, literacy: reading, writing, communicating, literature, grammar
science, sciences: biology, chemistry, physics, astronomy, life science, earth science, \
space science, earth and space science, physical science, environmental science, engineering
social studies, social science, social sciences: history, civics, geography, economics, government
computer science, computing, cs: coding, programming, technology, digital literacy
art, arts, fine arts: music, dance, drama, theatre, theatre arts, visual arts, media arts
physical education, phys ed, pe, gym: fitness
health, health education, wellness: nutrition
foreign language, foreign languages, world language, world languages: spanish, french, german, latin
career education, career and technical education, careers, cte: vocational
financial literacy, personal finance, finance: budgeting
english language development, english as a second language, eld, esl: bilingual
"""
_FILLERS: Final = re.compile(
    r"(?:\b(?:a|and|ccss|common core|for|in|k 12|of|school|standards?|state|subject|the)\b|\s+)*"
)


class _Phrase(NamedTuple):
    text: str
    family: int
    names_family: bool


_PHRASES: Final = {
    phrase: _Phrase(phrase, family, names is family_names)
    for family, (family_names, _, parts) in enumerate(
        line.partition(": ") for line in _FAMILIES.splitlines()
    )
    for names in (family_names, parts)
    for phrase in names.split(", ")
}
_PHRASE_PATTERN: Final = rf"\b(?:{'|'.join(sorted(_PHRASES, key=len, reverse=True))})\b"


def match_subjects(text: str, available: Iterable[str]) -> tuple[str, ...]:
    """Return the subjects that *text* means, in the order of *available*.

    A subject that equals *text* except for case and punctuation is the only match, unless *text*
    names whole families: sources name their subjects differently, and ``English Language Arts``
    must also find ``Common Core English/Language Arts``. A text for which `is_subject` is true
    means whole families: ``math`` means every subject of mathematics, ``algebra`` the subjects of
    algebra and of all mathematics. Any other text means the subjects that contain it as whole
    words.
    """
    subjects = {subject: _words(subject) for subject in available}
    wanted = _words(text)
    same = _subjects_where(subjects, lambda words: words == wanted)
    is_known = is_subject(text)
    if same and not (is_known and all(each.names_family for each in _phrases(wanted))):
        return same
    if is_known:
        return _subjects_of_families(wanted, subjects)
    if _FILLERS.fullmatch(wanted):
        return ()
    return _subjects_where(subjects, lambda words: f" {wanted} " in f" {words} ")


def is_subject(text: str) -> bool:
    """Return True if *text* consists of names of school subjects and fillers such as "the"."""
    wanted = _words(text)
    return bool(_phrases(wanted) and _FILLERS.fullmatch(re.sub(_PHRASE_PATTERN, " ", wanted)))


def nearest_subjects(text: str, available: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return up to *limit* similar subjects for a text that `match_subjects` does not match.

    Subjects of a family that *text* names come first, then subjects with a similar spelling.
    """
    subjects = {subject: _words(subject) for subject in available}
    wanted = _words(text)
    close = difflib.get_close_matches(wanted, subjects.values(), n=limit)
    spelled = (subject for word in close for subject in subjects if subjects[subject] == word)
    return tuple(dict.fromkeys((*_subjects_of_families(wanted, subjects), *spelled)))[:limit]


def _subjects_of_families(wanted: str, subjects: Mapping[str, str]) -> tuple[str, ...]:
    phrases = _phrases(wanted)
    return _subjects_where(subjects, lambda words: any(_covers(each, words) for each in phrases))


def _covers(phrase: _Phrase, words: str) -> bool:
    found = _phrases(words)
    of_whole_families = [each for each in found if each.names_family]
    if phrase.names_family:
        return any(each.family == phrase.family for each in of_whole_families or found)
    is_named = f" {phrase.text} " in f" {words} "
    return is_named or any(each.family == phrase.family for each in of_whole_families)


def _phrases(words: str) -> list[_Phrase]:
    return [_PHRASES[phrase] for phrase in re.findall(_PHRASE_PATTERN, words)]


def _subjects_where(
    subjects: Mapping[str, str], condition: Callable[[str], bool]
) -> tuple[str, ...]:
    return tuple(subject for subject, words in subjects.items() if condition(words))


def _words(text: str) -> str:
    return _plain_words(text[:LONGEST_NAME])


@lru_cache(1024)  # each search compares the same loaded subjects; `_words` cuts long keys
def _plain_words(name: str) -> str:
    folded = plain_text(name).casefold().replace("&", " and ").replace("theater", "theatre")
    abbreviated = re.sub(r"\b([a-z])\.", r"\1", folded)  # P.E., U.S. History
    return " ".join(re.split(r"[\W_]+", abbreviated)).strip()
