"""Read the words around a text that may be a code: headings, labels and words that rule it out."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog.vocabulary.families import LABELS
from standards_mcp_catalog.vocabulary.names import POSTAL_CODES, STATES

_LONGEST_WORD: Final = 300
_LONGEST_WORDS_BEFORE: Final = 24
_LONGEST_HEADING: Final = 200
_LONGEST_LABEL_DISTANCE: Final = 200
_MOST_LABELS: Final = 5

# Words directly before a text that is not a code.
_VETO: Final = re.compile(
    r"""
    (?:(?<![^\W_])(?:
      figures?|figs?|tables?|sections?|sect?|chapters?|chap?|equations?|eqs?|eqn|appendix|pages?|pp
      |isbn|doi|theorem|lemma|case|rfc|iso|ieee|din
      |rooms?|rm|hall|locker|gate|apt|apartment|suite|building|bldg|lot
      |routes?|rte|highway|hwy|roads?|exit|bus|flight
      |version|ver|release|build|firmware|revision|rev|model|serial|parts?|sku|catalog|item|kit
      |invoice|order|no|nr|numbers?|extension|ext)
      [\s.:\#*-]{0,4}
    | (?<![^\W_])[vp]\.?\s?)$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RECORDING: Final = re.compile(
    r" (?:players?|files?|formats?|audio|videos?|recordings?|downloads?)\b", re.IGNORECASE
)
_FILE: Final = re.compile(
    r"\.(?:pdf|docx?|xlsx?|pptx?|html?|png|jpe?g|gif|zip|txt|md|csv|py|js|mp[34]|exe|gz"
    r"|com|org|net|edu|gov|io)$",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(
    r"://|@|^www\.|\.(?:com|org|net|edu|gov|io)/|^[.~]?/|\\|[^\W_]_+$", re.IGNORECASE
)
_NAME_GOES_ON: Final = re.compile(r"_+[^\W_]|@")
_WORD_START: Final = re.compile(r"[\s\"'()<>\[\]|,;]")

_STANDARDS: Final = (
    r"\b(?:standards?|benchmarks?|expectations|practices|smps?|ccss(?:\.?m)?|common core|teks|sols?"
    r"|ngss|c3|csta)\b"
)
_MENTION: Final = re.compile(rf"{_STANDARDS}|\baligned\b|\balignment\b", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"\b(?:standards?|benchmarks?|objectives?|expectations?|teks|sols?|codes?)"
    r"(?:\s+(?:no\.?|nr\.?|number))?[\s#*_`(]{1,4}$",
    re.IGNORECASE,
)
# Such as "Standards:", "State standards addressed -" and "| Day | Standard |".
_HEADING: Final = re.compile(
    rf"^[\W_]{{0,20}}(?:[\w/&'().,|*]{{1,30}} ){{0,6}}?{_STANDARDS}(?: ?\([^()]{{1,30}}\))?"
    r"(?:[ .]?(?:addressed|aligned|alignment|codes?|correlations?|covered|for this lesson"
    r"|for this unit|in this unit|met|math|ela|numbers?|taught|targeted|and objectives|of learning"
    r"|/ ?objectives?|\(s\)))*"
    r"[*_ ]*(?::|\s-\s|\||\t|$)",
    re.IGNORECASE,
)
_OTHER_HEADING: Final = re.compile(r"^[\W_]{0,20}[A-Za-z][\w /&()'-]{1,40}[*_ ]*:")
_LABEL: Final = re.compile(
    rf"(?<![^\W_])(?:(?P<family>{'|'.join(LABELS)}|SOLs)"
    rf"|(?P<state>{'|'.join(map(re.escape, STATES))})"
    rf"|(?P<code>(?-i:{'|'.join(POSTAL_CODES)}|NYS)))(?![^\W_])(?!-\w)",
    re.IGNORECASE,
)
_BETWEEN_CODES: Final = re.compile(
    r"(?:[\W_]|\b(?:and|or|through|to|standards?)\b|\b[A-Za-z]?\d\w*|\b[A-Za-z]\b)*",
    re.IGNORECASE,
)
_BESIDE_FAMILY: Final = re.compile(r"(?:[\s:.,#(-]|standards?\b|math\b|ela\b){0,6}", re.IGNORECASE)
# A sentence or a bracket between them parts the two: "George Washington. (3.NF.1)"
_BESIDE_STATE: Final = re.compile(
    r"(?:[\s:-]|standards?\b|math\b|ela\b|science\b){1,6}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Label:
    """The family or the state that is named before codes.

    Attributes:
        is_family: True for a family of codes such as TEKS, False for a state.
        is_adjacent: True if the code follows directly, False if other codes are between.
    """

    name: str
    is_family: bool
    is_adjacent: bool


def is_part_of_name(line: str, start: int, end: int) -> bool:
    """Return True if a text is in a web address or a file name, or after a word such as "room"."""
    text = line[start:end]
    if _FILE.search(text) or _NAME_GOES_ON.match(line, end):
        return True
    if text.upper() in ("MP3", "MP4") and _RECORDING.match(line, end):
        return True
    prefix = _WORD_START.split(line[max(0, start - _LONGEST_WORD) : start])[-1]
    before = line[max(0, start - _LONGEST_WORDS_BEFORE) : start]
    # "Standard number 3.NF.1" is a code, in spite of "number".
    return bool(_ADDRESS.search(prefix) or (_VETO.search(before) and not _NAMED.search(before)))


def mentions_standards(line: str) -> bool:
    """Return True if a line speaks of standards."""
    return _MENTION.search(line) is not None


def is_named(line: str, start: int) -> bool:
    """Return True if a word such as "standard" is directly before a position."""
    return _NAMED.search(line[max(0, start - _LONGEST_WORDS_BEFORE) : start]) is not None


def heading_end(line: str) -> int:
    """Return the end of a heading such as "Standards:" at the beginning of a line, or 0."""
    match = _HEADING.search(line[:_LONGEST_HEADING])
    return match.end() if match else 0


def is_other_heading(line: str) -> bool:
    """Return True if a line begins with another heading, such as "Materials:"."""
    return _OTHER_HEADING.match(line) is not None


class Labels:
    """The families and states that a line names."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._matches = list(_LABEL.finditer(line))
        self._ends = [match.end() for match in self._matches]

    def before(self, position: int) -> Label | None:
        """Return the last label before a position, with nothing but codes between them."""
        for match in self._matches[: bisect.bisect_right(self._ends, position)][:-_MOST_LABELS:-1]:
            between = self._line[match.end() : position]
            if len(between) > _LONGEST_LABEL_DISTANCE:
                break
            is_family = match["family"] is not None
            beside = _BESIDE_FAMILY if is_family else _BESIDE_STATE
            is_adjacent = beside.fullmatch(between) is not None
            if is_adjacent or (is_family and _BETWEEN_CODES.fullmatch(between)):
                name = "SOL" if match[0].casefold() == "sols" else match[0]
                return Label(name, is_family, is_adjacent)
        return None
