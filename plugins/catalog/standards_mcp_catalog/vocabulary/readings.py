"""Readings of texts that name standards: one code, or a list of them.

`notation.canonical_key` makes the certain spellings of one code equal. The readings here are less
certain: a code in the style of 2010, one after the mark of a state, the address of a page. They are
tried in order, and only if the catalog does not know the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from .families import COMMON_CORE, LABELS, family_of
from .names import state_named
from .notation import asn_id_of, codes_in, guid_of, is_common_core, plain_text

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

# Prefixes that states put before codes of the Common Core, such as the mark of New York in
# NY-3.NF.1. After a space only capitals count: "or 3.NF.1" is not of Oregon.
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
    """Return the readings of the name of one standard: first the text itself, then the surest.

    Nothing is raised for any text, and the time is proportional to its length.
    """
    bare = _without_label(unwrapped(plain_text(text)))
    found = (Reading(text.strip()), Reading(bare), *_meant_by(bare))
    return tuple(dict.fromkeys(each for each in found if each.code))


def codes_of_places(text: str) -> Iterator[Reading]:
    """Yield the readings of a code after the name of a place, such as ``NY-AA.1``.

    Letters before a dot are not a place: ``MA.3.FR.1`` is a code of Florida, not of Massachusetts.
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
            # With a note, because states have changed the texts.
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


_BETWEEN: Final = re.compile(r"[,;|\n\r\v\f\u2028\u2029]+")
_WORDS_BETWEEN: Final = re.compile(r"(?<=\s)(?:and|or|plus|&|\+)(?=\s)", re.IGNORECASE)
_MOST_WORDS: Final = 3
_TOO_SHORT: Final = re.compile(
    r"(?:\d{1,2}|[a-z])(?:\s+(?:and|or|&)\s+(?:\d{1,2}|[a-z]))?", re.IGNORECASE
)
_DIGIT: Final = re.compile(r"\d")
# A letter, a digit and a separator, but not "2-digit".
_LIKE_A_CODE: Final = re.compile(
    r"(?!\d+-[a-z]{2,}$)(?=[\w§.:()-]*\d)(?=[\w§.:()-]*[a-z])[\w§]+(?:[.:(-]+\w+\)*)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Request:
    """A text that names a standard, or parts that do so.

    Attributes:
        text: As it was written.
        readings: What the text may mean, the surest first.
        parts: What its parts name; they count where no reading of the whole is known.
    """

    text: str
    readings: tuple[Reading, ...]
    parts: tuple[Request, ...] = ()

    def every_reading(self) -> Iterator[Reading]:
        """Yield the readings of the text and of its parts."""
        yield from self.readings
        for part in self.parts:
            yield from part.every_reading()

    def names(self) -> list[str]:
        """Return the texts that each name one standard, if the parts count."""
        return [name for part in self.parts for name in part.names()] or [self.text]


def requests_in(text: str) -> Request:
    """Return the standards that a text names: one code or id, or several.

    Commas, semicolons, line ends and words such as "and" separate, and so do spaces between what
    is surely a code. The whole text comes first, since a code may have any of them. Nothing is
    raised for any text, and the time is proportional to its length.
    """
    pieces = [piece for each in _BETWEEN.split(text) if (piece := unwrapped(each))]
    if len(pieces) < 2:  # noqa: PLR2004
        return _piece(text.strip())
    parts = tuple(_part(each) for each in pieces if _may_name(each))
    if not any(part.parts or _codes(part.text) or codes_in(part.text) for part in parts):
        parts = ()
    return Request(text.strip(), (Reading(text.strip()),), tuple(dict.fromkeys(parts)))


def _piece(text: str) -> Request:
    halves = [half for each in _WORDS_BETWEEN.split(text) if (half := unwrapped(each))]
    parts: tuple[Request, ...] = ()
    if len(halves) > 1 and any(map(_codes, halves)):
        parts = tuple(_part(each) for each in halves if _may_name(each))
        return Request(text, (Reading(text),), parts)
    return _words(text)


def _part(text: str) -> Request:
    # In a list "3.NF.1, 2" the number alone is not a code, though some publishers have such codes.
    return Request(text, ()) if _TOO_SHORT.fullmatch(text) else _piece(text)


def _words(text: str) -> Request:
    found = readings(text)
    codes = _codes(text)
    if not codes or (len(codes) == 1 and len(found) > 2) or codes == [text]:  # noqa: PLR2004
        return Request(text, found)
    return Request(text, found, tuple(Request(code, readings(code)) for code in codes))


def _codes(text: str) -> list[str]:
    """Return the words of a text that are codes, if one of them is so beyond doubt."""
    words = [unwrapped(word) for word in re.split(r"\s+|(?<!/)/(?![/])", plain_text(text))]
    like = [word for word in words if is_code(word) or _LIKE_A_CODE.fullmatch(word)]
    return list(dict.fromkeys(like)) if any(map(is_code, like)) else []


def _may_name(piece: str) -> bool:
    words = len(piece.split())
    return (
        words == 1 or bool(_codes(piece)) or (words <= _MOST_WORDS and bool(_DIGIT.search(piece)))
    )
