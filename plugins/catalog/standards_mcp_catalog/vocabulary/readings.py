"""What somebody may mean by the text of one code that no catalog has in that spelling.

`notation.canonical_key` makes equal what is surely one code. What is read here is less sure: a code
in the style of 2010, one behind the mark of a state, the address of a page. So these readings are
tried only where a catalog does not know the text as it stands, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from .families import COMMON_CORE, LABELS, family_of
from .notation import asn_id_of, guid_of, is_common_core, plain_text
from .places import state_named

_MARKS: Final = " \t\r\n.,;:!?*•·#\"'`\u201c\u201d\u2018\u2019«»„<>[]{}|"
_LABEL: Final = re.compile(
    r"(?:(?:the|standards?|codes?|benchmarks?|objectives?|indicators?|performance|expectations?|id|CCSS)"
    r"[\s:#=*(\[{\"'\u201c\u2018]+)+",
    re.IGNORECASE,
)
_FAMILY: Final = re.compile(rf"({'|'.join(LABELS)})[\s:.#§(-]+", re.IGNORECASE)

# Spellings that `canonical_key` does not join, in upper case. Whatever is made of a match counts
# only if it is a code of the Common Core.
_CC: Final = r"(?:(?:CCSS|CC)[.-])?"
_DOMAIN: Final = (
    r"(?P<domain>APR|CC|CED|CN|CO|CP|EE|GMD|GPE|IC|ID|IF|BF|LE|MD|MG|NBT|NF|NS|OA|REI|RN|RP|SP|SRT"
    r"|SSE|TF|VM|[FGCQ])"
)
_NUMBER: Final = r"[.-]?0*(?P<number>[1-9]\d?)[.-]?(?P<part>[A-Z]?)"
_CLUSTER: Final = r"[.-]?(?P<cluster>[A-D]?)"
_STRAND: Final = r"(?P<strand>R[.-]?(?:L|I|F|H|ST)|W[.-]?HST|SL|W|L)"
_GRADE: Final = r"0?(?P<grade>9[.-]?10|11[.-]?12|6[.-]?8|1[0-2]|[1-9]|K)"
_ELA: Final = "{strand}.{grade}.{number}{part}"
_SPELLINGS: Final = tuple(
    (re.compile(pattern), template)
    for pattern, template in (
        # 3NFA1, 3.NFA1
        (rf"{_CC}0?(?P<first>[1-8K])[.-]?{_DOMAIN}{_CLUSTER}{_NUMBER}",
         "{first}.{domain}.{cluster}.{number}{part}"),
        # HSAREIB4, A-REIB4, CC.9-12.S-ID.6
        (rf"{_CC}(?:9[.-]12[.-])?(?:HS[.-]?)?(?P<first>[NAFGS])[.-]?{_DOMAIN}{_CLUSTER}{_NUMBER}",
         "{first}.{domain}.{cluster}.{number}{part}"),
        (rf"{_CC}K[.-]12[.-]MP[.-]?(?P<number>[1-8])", "MP.{number}"),
        (rf"{_CC}K[.-]12[.-](?P<strand>R|W|SL|L)[.-](?:CCR|R|W|SL|L){_NUMBER}",
         "CCR.{strand}.{number}"),
        # CC.3.R.L.1, 4RL3, RL.910.3
        (rf"{_CC}(?:ELA[.-])?{_GRADE}[.-]?{_STRAND}{_NUMBER}", _ELA),
        (rf"{_CC}(?:ELA[.-])?{_STRAND}[.-]?{_GRADE}[.-]{_NUMBER}", _ELA),
    )
)  # fmt: skip
_BANDS: Final = {
    "9.10": "9-10",
    "910": "9-10",
    "11.12": "11-12",
    "1112": "11-12",
    "6.8": "6-8",
    "68": "6-8",
}

# What states put before the codes that they took over from the Common Core, the mark of New York
# in NY-3.NF.1. After a space only capitals count: "or 3.NF.1" is not of Oregon.
_STATE_MARK: Final = re.compile(
    r"(?:NYS|NJSLS|MGSE|ELAGSE|MCC)(?![A-Z]{2})|[A-Z]{2}(?=[.:-])|(?-i:[A-Z]{2}(?= ))",
    re.IGNORECASE,
)
_MARKED: Final = {"NYS": "NY", "NJSLS": "NJ", "MGSE": "GA", "ELAGSE": "GA", "MCC": "GA"}
_MOST_WORDS_OF_A_STATE: Final = 3
# They never took over the Common Core, or gave it up for codes of their own.
_WITHOUT_COMMON_CORE: Final = frozenset(
    ("Alaska", "Florida", "Indiana", "Nebraska", "Oklahoma", "South Carolina", "Texas", "Virginia")
)

_ADDRESS: Final = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_SCIENCE_PAGE: Final = re.compile(
    r"(?:K-2|3-5|K|[1-8]|MS|HS)-(?:PS|LS|ESS|ETS)\d-\d{1,2}(?![^-])", re.IGNORECASE
)
_MOST_SEGMENTS: Final = 6


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing that a text may mean.

    Attributes:
        code: What to find in a catalog.
        places: The names of the jurisdictions whose standards alone are meant; empty is any.
        in_place_of: The state that the text names, where the standard of another is meant.
    """

    code: str
    places: tuple[str, ...] = ()
    in_place_of: str = ""


def readings(text: str) -> tuple[Reading, ...]:
    """Return what *text*, meant to name one standard, may mean: first itself, then the surest.

    Nothing is raised for any text, and the time is proportional to its length.
    """
    bare = _without_label(unwrapped(plain_text(text)))
    found = (Reading(text.strip()), Reading(bare), *_meant_by(bare))
    return tuple(dict.fromkeys(each for each in found if each.code))


def codes_of_places(text: str) -> Iterator[Reading]:
    """Yield the readings of a code after the name of a place, such as ``NY-AA.1``.

    Letters before a dot are no place: ``MA.3.FR.1`` is a code of Florida, not of Massachusetts.
    """
    bare = unwrapped(plain_text(text))
    if label := _FAMILY.match(bare):
        yield Reading(bare[label.end() :], places=LABELS[label[1].upper()].places)
    if family_of(bare):
        return
    for state, rest in _states_before(bare):
        if not rest.startswith("."):
            yield Reading(rest.lstrip(_MARKS + "-"), places=(state,))


def unwrapped(text: str) -> str:
    """Return a text without the marks around it; a bracket that it opens itself stays closed."""
    rest = text.strip(_MARKS).lstrip("(" + _MARKS)
    return rest if "(" in rest else rest.rstrip(")" + _MARKS)


def is_code(text: str) -> bool:
    """Tell whether a text is surely meant as a code or an id: by its form alone."""
    if family_of(text) or guid_of(text) or asn_id_of(text):
        return True
    return bool(list(_spelled(text)) or list(_of_state(text)))


def _meant_by(text: str) -> Iterator[Reading]:
    if _ADDRESS.fullmatch(text):
        yield from map(Reading, _of_address(text))
        return
    yield from map(Reading, _spelled(text))
    yield from _of_state(text)
    if label := _FAMILY.match(text):
        yield Reading(text[label.end() :], places=LABELS[label[1].upper()].places)


def _without_label(text: str) -> str:
    return text[match.end() :] if (match := _LABEL.match(text)) else text


def _spelled(text: str) -> Iterator[str]:
    """Yield the Common Core code that a text is in another spelling, unless it is one already."""
    if is_common_core(text):
        return
    code = re.sub(r"[^A-Z0-9-]+", ".", text.upper()).strip(".-")
    for pattern, template in _SPELLINGS:
        if match := pattern.fullmatch(code):
            parts = match.groupdict(default="")
            grade = parts.get("grade", "").replace("-", ".")
            strand = re.sub(r"[.-]", "", parts.get("strand", ""))
            parts |= {"grade": _BANDS.get(grade, grade), "strand": strand}
            made = template.format_map({"part": "", **parts}).replace("..", ".")
            if is_common_core(made):
                yield made
                return


def _of_state(text: str) -> Iterator[Reading]:
    """Yield the readings of a Common Core code behind the mark or the name of a state."""
    if family_of(text):  # CT.L2:1 is of CSTA, not of Connecticut
        return
    for state, rest in _states_before(text):
        bare = _without_label(rest.lstrip(_MARKS + "-"))
        code = bare if is_common_core(bare) else next(_spelled(bare), "")
        if code:
            yield Reading(code, places=(state,))
            if state not in _WITHOUT_COMMON_CORE:
                yield Reading(code, places=COMMON_CORE.places, in_place_of=state)
            return


def _states_before(text: str) -> Iterator[tuple[str, str]]:
    if match := _STATE_MARK.match(text):
        mark = match[0].upper()
        if state := state_named(_MARKED.get(mark, mark)):
            yield state, text[match.end() :]
    words = text.split(maxsplit=_MOST_WORDS_OF_A_STATE)
    for count in range(1, len(words)):
        name = " ".join(words[:count]).rstrip(_MARKS)
        if len(name) > len("NY") and (state := state_named(name)):
            yield state, " ".join(words[count:])


def _of_address(address: str) -> Iterator[str]:
    """Yield the codes that the address of a page may end with, in one segment or in several."""
    segments = [part for part in re.split(r"[/?#&=]", unquote(address)) if part]
    for segment in reversed(segments[-_MOST_SEGMENTS:]):
        if page := _SCIENCE_PAGE.match(segment):
            yield page[0]
        elif is_code(segment):
            yield segment
    for start in range(-_MOST_SEGMENTS, -1):
        code = ".".join(segments[start:])
        if is_common_core(code):
            yield code
