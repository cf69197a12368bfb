"""Parse texts that name standards: one code, or a list of codes.

`notation.canonical_key` makes spellings equal that certainly mean the same code. A `Reading` is
less certain: a code in the style of 2010, a code after a state's prefix, the address of a page.
Readings are tried in order, and only if the catalog does not have the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

from .families import COMMON_CORE, LABELS, Family, family_of
from .names import state_named
from .notation import asn_id_of, codes_in, guid_of, is_common_core, plain_text

_PUNCTUATION: Final = " \t\r\n.,;:!?*•·#\"'`\u201c\u201d\u2018\u2019«»„<>[]{}|"
_LABEL: Final = re.compile(
    r"(?:(?:the|standards?|codes?|benchmarks?|objectives?|indicators?|performance|expectations?|id|CCSS)"
    r"[\s:#=*(\[{\"'\u201c\u2018]+)+",
    re.IGNORECASE,
)
_FAMILY: Final = re.compile(rf"({'|'.join(LABELS)})[\s:.#§(-]+", re.IGNORECASE)

# Patterns, in upper case, of spellings that `canonical_key` does not cover. The code that is made
# of a match counts only if it is a code of the Common Core.
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
_SPELLINGS: Final = (
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
)  # fmt: skip
_BANDS: Final = {
    "9.10": "9-10",
    "910": "9-10",
    "11.12": "11-12",
    "1112": "11-12",
    "6.8": "6-8",
    "68": "6-8",
}

# Prefixes that states put before codes of the Common Core, such as NY in NY-3.NF.1. Before a space
# only capitals count: "or 3.NF.1" is not a code of Oregon.
_STATE_PREFIX: Final = re.compile(
    r"(?:NYS|NJSLS|MGSE|ELAGSE|MCC)(?![A-Z]{2})|[A-Z]{2}(?=[.:-])|(?-i:[A-Z]{2}(?= ))",
    re.IGNORECASE,
)
_STATES_BY_PREFIX: Final = {"NYS": "NY", "NJSLS": "NJ", "MGSE": "GA", "ELAGSE": "GA", "MCC": "GA"}
_MOST_WORDS_OF_A_STATE: Final = 3
# States that never adopted the Common Core, or replaced it by codes of their own.
_WITHOUT_COMMON_CORE: Final = frozenset(
    ("Alaska", "Florida", "Indiana", "Nebraska", "Oklahoma", "South Carolina", "Texas", "Virginia")
)

_ADDRESS: Final = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_SCIENCE_PAGE: Final = re.compile(
    r"(?:K-2|3-5|K|[1-8]|MS|HS)-(?:PS|LS|ESS|ETS)\d-\d{1,2}(?![^-])", re.IGNORECASE
)
_MOST_SEGMENTS: Final = 6


class Reading(NamedTuple):
    """One possible meaning of a text.

    Attributes:
        code: Code or id to look up in a catalog.
        places: Names of the only jurisdictions whose standards match; empty for all.
        in_place_of: The state that the text names, if `places` is the Common Core instead.
    """

    code: str
    places: tuple[str, ...] = ()
    in_place_of: str = ""


def readings(text: str) -> tuple[Reading, ...]:
    """Return the readings of a text that names one standard: the text itself, then by certainty.

    This accepts any text, and takes time in proportion to its length.
    """
    bare = _without_label(unwrapped(plain_text(text)))
    found = (Reading(text.strip()), Reading(bare), *_uncertain_readings(bare))
    return tuple(dict.fromkeys(each for each in found if each.code))


def family_meant(text: str) -> Family | None:
    """Return the family of the first reading of *text* that has one."""
    families = (family_of(reading.code) for reading in readings(text))
    return next((family for family in families if family), None)


def codes_of_places(text: str) -> Iterator[Reading]:
    """Yield the readings of a code after a state or a family's label: ``NY-AA.1``, ``SOL 3.5``.

    Letters before a dot are not a state: ``MA.3.FR.1`` is a code of Florida, not of Massachusetts.
    """
    bare = unwrapped(plain_text(text))
    if label := _FAMILY.match(bare):
        yield Reading(bare[label.end() :], places=LABELS[label[1].upper()].places)
    if family_of(bare):
        return
    for state, rest in _states_before(bare):
        if not rest.startswith("."):
            yield Reading(rest.lstrip(_PUNCTUATION + "-"), places=(state,))


def unwrapped(text: str) -> str:
    """Return *text* without the punctuation around it, but with the brackets of ``111.5(b)(3)``."""
    rest = text.strip(_PUNCTUATION).lstrip("(" + _PUNCTUATION)
    return rest if "(" in rest else rest.rstrip(")" + _PUNCTUATION)


def is_code(text: str) -> bool:
    """Return True if the form of *text* alone shows that it is a code or an id."""
    if family_of(text) or guid_of(text) or asn_id_of(text):
        return True
    return bool(list(_respelled(text)) or list(_readings_after_state(text)))


def _uncertain_readings(text: str) -> Iterator[Reading]:
    if _ADDRESS.fullmatch(text):
        yield from map(Reading, _codes_in_address(text))
        return
    yield from map(Reading, _respelled(text))
    yield from _readings_after_state(text)
    if label := _FAMILY.match(text):
        yield Reading(text[label.end() :], places=LABELS[label[1].upper()].places)


def _without_label(text: str) -> str:
    return text[match.end() :] if (match := _LABEL.match(text)) else text


def _respelled(text: str) -> Iterator[str]:
    """Yield the Common Core code for a text in one of the `_SPELLINGS`, else nothing."""
    if is_common_core(text):
        return
    code = re.sub(r"[^A-Z0-9-]+", ".", text.upper()).strip(".-")
    for pattern, template in _SPELLINGS:
        if match := re.fullmatch(pattern, code):
            parts = match.groupdict(default="")
            grade = parts.get("grade", "").replace("-", ".")
            strand = re.sub(r"[.-]", "", parts.get("strand", ""))
            parts |= {"grade": _BANDS.get(grade, grade), "strand": strand}
            made = template.format_map({"part": "", **parts}).replace("..", ".")
            if is_common_core(made):
                yield made
                return


def _readings_after_state(text: str) -> Iterator[Reading]:
    """Yield the readings of a Common Core code after the prefix or the name of a state."""
    for state, rest in _states_before(text):
        if family_of(text):  # CT.L2:1 is of CSTA, not of Connecticut
            return
        bare = _without_label(rest.lstrip(_PUNCTUATION + "-"))
        code = bare if is_common_core(bare) else next(_respelled(bare), "")
        if code:
            yield Reading(code, places=(state,))
            # Lookups add a note to this reading, because states have changed the texts.
            if state not in _WITHOUT_COMMON_CORE:
                yield Reading(code, places=COMMON_CORE.places, in_place_of=state)
            return


def _states_before(text: str) -> Iterator[tuple[str, str]]:
    """Yield the states that *text* may begin with, each with the rest of *text*."""
    if match := _STATE_PREFIX.match(text):
        mark = match[0].upper()
        if state := state_named(_STATES_BY_PREFIX.get(mark, mark)):
            yield state, text[match.end() :]
    words = text.split(maxsplit=_MOST_WORDS_OF_A_STATE)
    for count in range(1, len(words)):
        name = " ".join(words[:count]).rstrip(_PUNCTUATION)
        if len(name) > len("NY") and (state := state_named(name)):
            yield state, " ".join(words[count:])


def _codes_in_address(address: str) -> Iterator[str]:
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


_LIST_SEPARATOR: Final = re.compile(r"[,;|\n\r\v\f\u2028\u2029]+")
_LIST_WORD: Final = re.compile(r"(?<=\s)(?:and|or|plus|&|\+)(?=\s)", re.IGNORECASE)
_MOST_WORDS_OF_A_NAME: Final = 3
_TOO_SHORT: Final = re.compile(
    r"(?:\d{1,2}|[a-z])(?:\s+(?:and|or|&)\s+(?:\d{1,2}|[a-z]))?", re.IGNORECASE
)
_DIGIT: Final = re.compile(r"\d")
# A letter, a digit and a separator, but not "2-digit".
_LIKE_A_CODE: Final = re.compile(
    r"(?!\d+-[a-z]{2,}$)(?=[\w§.:()-]*\d)(?=[\w§.:()-]*[a-z])[\w§]+(?:[.:(-]+\w+\)*)+",
    re.IGNORECASE,
)


class Request(NamedTuple):
    """A text that names one standard, or several standards in its parts.

    Attributes:
        text: The text as it was written.
        readings: The possible meanings of the whole text, the surest first.
        parts: Requests for the parts, for the case that the catalog has no reading of the whole.
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
        """Return the texts of the innermost parts, which each name one standard."""
        return [name for part in self.parts for name in part.names()] or [self.text]


def requests_in(text: str) -> Request:
    """Return the request of a text that names one standard, or several in a list.

    Commas, semicolons, line ends and words such as "and" separate standards, and so do spaces
    between texts that surely are codes. A code itself may contain any of these, so the request has
    readings of the whole text, too. This accepts any text, and takes time in proportion to its
    length.
    """
    pieces = [piece for each in _LIST_SEPARATOR.split(text) if (piece := unwrapped(each))]
    if len(pieces) < 2:  # noqa: PLR2004
        return _split_at_words(text.strip())
    parts = tuple(_list_item(each) for each in pieces if _may_name_standard(each))
    if not any(part.parts or _code_words(part.text) or codes_in(part.text) for part in parts):
        parts = ()
    return Request(text.strip(), (Reading(text.strip()),), tuple(dict.fromkeys(parts)))


def _split_at_words(text: str) -> Request:
    halves = [half for each in _LIST_WORD.split(text) if (half := unwrapped(each))]
    parts: tuple[Request, ...] = ()
    if len(halves) > 1 and any(map(_code_words, halves)):
        parts = tuple(_list_item(each) for each in halves if _may_name_standard(each))
        return Request(text, (Reading(text),), parts)
    return _split_at_spaces(text)


def _list_item(text: str) -> Request:
    # In a list "3.NF.1, 2" the number alone is not a code, though some publishers have such codes.
    return Request(text, ()) if _TOO_SHORT.fullmatch(text) else _split_at_words(text)


def _split_at_spaces(text: str) -> Request:
    found = readings(text)
    codes = _code_words(text)
    if not codes or (len(codes) == 1 and len(found) > 2) or codes == [text]:  # noqa: PLR2004
        return Request(text, found)
    return Request(text, found, tuple(Request(code, readings(code)) for code in codes))


def _code_words(text: str) -> list[str]:
    """Return the words of *text* that look like codes, or none if no word surely is a code."""
    words = [unwrapped(word) for word in re.split(r"\s+|(?<!/)/(?![/])", plain_text(text))]
    candidates = [word for word in words if is_code(word) or _LIKE_A_CODE.fullmatch(word)]
    return list(dict.fromkeys(candidates)) if any(map(is_code, candidates)) else []


def _may_name_standard(piece: str) -> bool:
    words = len(piece.split())
    return (
        words == 1
        or bool(_code_words(piece))
        or (words <= _MOST_WORDS_OF_A_NAME and bool(_DIGIT.search(piece)))
    )
