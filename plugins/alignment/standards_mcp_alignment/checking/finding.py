"""Find the parts of a lesson that may be codes.

A lesson has many texts that only look like codes: versions, rooms, formulas, part numbers. So the
form of a text and the words around it decide together how much the catalog must confirm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from standards_mcp_catalog.vocabulary.families import LABELS
from standards_mcp_catalog.vocabulary.names import POSTAL_CODES, STATES

from .forms import Form, form_of

_LONGEST_WORD: Final = 300
_LONGEST_VETO: Final = 24
_LONGEST_HEADER: Final = 200
_LONGEST_LABEL_DISTANCE: Final = 200
_MOST_IN_A_RANGE: Final = 12


class Evidence(IntEnum):
    """The evidence that a text is a code.

    Attributes:
        EXACT: It is one only if a standard has this code.
        FAMILIAR: It is one only if a standard has this code or is its neighbour in a heading.
        CERTAIN: It is one, even if no standard has it.
    """

    EXACT = 1
    FAMILIAR = 2
    CERTAIN = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A part of a lesson that may be a code.

    Attributes:
        text: The code as it is written; of a range such as ``RL.4.1-3``, one of its codes.
        start: Position of the written text in the transcript.
        end: Position after it.
        asked: The text to look up: the code after its label, such as ``TEKS``, if it has one.
    """

    text: str
    start: int
    end: int
    asked: str
    evidence: Evidence


# "=" or a dot before a text shows that it is a part of a formula or of a longer name.
_TOKEN: Final = re.compile(
    r"(?<![^\W_])(?<![.=^~$@\\+-])(?:\u00a7+ ?)?[A-Za-z0-9]+"
    r"(?:[.:-]{1,2}[A-Za-z0-9]+|\.?(?:\([A-Za-z0-9]{1,4}\))+)*"
)
_RANGE: Final = re.compile(r"(?P<head>.*[.-])(?P<first>\d{1,2})-(?P<last>\d{1,2})")
_RANGE_OF_PARTS: Final = re.compile(r"(?P<head>.*\d)\.?(?P<first>[a-hA-H])-(?P<last>[a-hA-H])")
_RECORDING: Final = re.compile(
    r" (?:players?|files?|formats?|audio|videos?|recordings?|downloads?)\b", re.IGNORECASE
)
# Words directly before a text that is not a code.
_VETO: Final = re.compile(
    r"""
    (?:(?<![^\W_])(?:figures?|figs?|tables?|sections?|sect?|chapters?|chap?|equations?|eqs?|eqn|appendix|rooms?|rm
      |version|ver|release|build|model|serial|parts?|sku|isbn|doi|pages?|pp|routes?|rte|highway|hwy|roads?|exit
      |bus|flight|gate|apt|apartment|suite|building|bldg|lot|invoice|order|case|iso|ieee|rfc|din|no|nr
      |numbers?|hall|locker|extension|ext|theorem|lemma|firmware|revision|rev|catalog|item|kit)
      [\s.:\#*-]{0,4}
    | (?<![^\W_])[vp]\.?\s?)$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FILE: Final = re.compile(
    r"\.(?:pdf|docx?|xlsx?|pptx?|html?|png|jpe?g|gif|zip|txt|md|csv|py|js|mp[34]|exe|gz|com|org|net|edu|gov|io)$",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(
    r"://|@|^www\.|\.(?:com|org|net|edu|gov|io)/|^[.~]?/|\\|[^\W_]_+$", re.IGNORECASE
)
_WORD_START: Final = re.compile(r"[\s\"'()<>\[\]|,;]")
_STANDARDS: Final = r"\b(?:standards?|benchmarks?|ccss(?:\.?m)?|common core|teks|sols?|ngss|c3|csta|expectations|practices|smps?)\b"
_MENTION: Final = re.compile(rf"{_STANDARDS}|\baligned\b|\balignment\b", re.IGNORECASE)
# "Standards:", "State standards addressed -", "| Day | Standard |", "CCSS.Math:"
_HEADER: Final = re.compile(
    rf"^[\W_]{{0,20}}(?:[\w/&'().,|*]{{1,30}} ){{0,6}}?{_STANDARDS}(?: ?\([^()]{{1,30}}\))?"
    r"(?:[ .]?(?:addressed|aligned|alignment|codes?|correlations?|covered|for this lesson|for this unit|in this unit"
    r"|met|math|ela|numbers?|taught|targeted|and objectives|of learning|/ ?objectives?|\(s\)))*"
    r"[*_ ]*(?::|\s-\s|\||\t|$)",
    re.IGNORECASE,
)
_OTHER_HEADER: Final = re.compile(r"^[\W_]{0,20}[A-Za-z][\w /&()'-]{1,40}[*_ ]*:")
_LABEL: Final = re.compile(
    rf"(?<![^\W_])(?:(?P<family>{'|'.join(LABELS)}|SOLs)|(?P<state>{'|'.join(map(re.escape, STATES))})"
    rf"|(?P<code>(?-i:{'|'.join(POSTAL_CODES)}|NYS)))(?![^\W_])(?!-\w)",
    re.IGNORECASE,
)
_BETWEEN_CODES: Final = re.compile(
    r"(?:[\W_]|\b(?:and|or|through|to|standards?)\b|\b[A-Za-z]?\d\w*|\b[A-Za-z]\b)*", re.IGNORECASE
)
_BESIDE: Final = re.compile(r"(?:[\s:.,#(-]|standards?\b|math\b|ela\b){0,6}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Label:
    """The family or the state that is named before codes."""

    name: str
    is_family: bool


@dataclass(frozen=True, slots=True)
class _Context:
    """The words around a token.

    Attributes:
        label: The label that is valid for the token.
        is_list: True below or after a heading such as "Standards:".
        has_code: True if the line has a certain code.
        is_mention: True if the line has a word such as "standards".
    """

    label: _Label | None
    is_list: bool
    has_code: bool
    is_mention: bool


def candidates(text: str) -> list[Candidate]:
    """Return the parts of a transcript that may be codes, in their order."""
    found, position = list[Candidate](), 0
    is_list, header_label = False, None
    was_header = False
    for line in text.split("\n"):
        header = _HEADER.search(line[:_LONGEST_HEADER])
        tokens = list(_tokens(line))
        if not line.strip():
            is_list = is_list and was_header  # a list may follow its heading after a blank line
        elif header:
            is_list, header_label = True, None
            header_label = _label_before(line, header.end(), None)
        elif _OTHER_HEADER.match(line):
            is_list, header_label = False, None
        if line.strip():
            was_header = bool(header) and not tokens
        has_code = any(form is Form.CERTAIN for _, form in tokens)
        is_mention = bool(tokens) and bool(_MENTION.search(line))
        for match, form in tokens:
            listed = is_list and (not header or match.start() >= header.end())
            label = _label_before(line, match.start(), header_label if listed else None)
            context = _Context(label, listed, has_code, is_mention)
            for each in _candidates_of(match[0], form, context):
                yield_start = position + match.start()
                found.append(
                    replace(each, start=each.start + yield_start, end=each.end + yield_start)
                )
        position += len(line) + 1
    return found


def _tokens(line: str) -> Iterator[tuple[re.Match[str], Form]]:
    for match in _TOKEN.finditer(line):
        form = form_of(match[0])
        if form and not _is_part_of_name(line, match):
            yield match, form


def _is_part_of_name(line: str, match: re.Match[str]) -> bool:
    """Return True if a token is in a web address, a file name or after a word such as "room"."""
    if _FILE.search(match[0]) or re.match(r"_+[^\W_]|@", line[match.end() : match.end() + 3]):
        return True
    if match[0].upper() in ("MP3", "MP4") and _RECORDING.match(line, match.end()):
        return True
    start, word = match.start(), line[max(0, match.start() - _LONGEST_WORD) : match.start()]
    prefix = _WORD_START.split(word)[-1]
    return bool(
        _ADDRESS.search(prefix) or _VETO.search(line[max(0, start - _LONGEST_VETO) : start])
    )


def _label_before(line: str, position: int, default: _Label | None) -> _Label | None:
    """Return the last label before a position, if only codes are between, or *default*."""
    for match in reversed(
        list(_LABEL.finditer(line, max(0, position - _LONGEST_LABEL_DISTANCE), position))
    ):
        between = line[match.end() : position]
        if match["family"] and _BETWEEN_CODES.fullmatch(between):
            return _Label(
                match[0].rstrip("sS") if match[0].casefold() == "sols" else match[0], is_family=True
            )
        if not match["family"] and _BESIDE.fullmatch(between):
            return _Label(match[0], is_family=False)
    return default


def _candidates_of(text: str, form: Form, context: _Context) -> Iterator[Candidate]:
    """Yield the codes of a token, with positions in it: one, several in a range, or none."""
    if form is Form.SHAPED:
        if parts := _ends_of_range(text):
            for start, end in parts:
                yield from _candidates_of_code(text[start:end], Form.CERTAIN, context, start, end)
            return
        if codes := _codes_of_range(text):
            for code in codes:
                yield from _candidates_of_code(code, Form.CERTAIN, context, 0, len(text))
            return
    yield from _candidates_of_code(text, form, context, 0, len(text))


def _candidates_of_code(
    code: str, form: Form, context: _Context, start: int, end: int
) -> Iterator[Candidate]:
    evidence = _evidence(code, form, context)
    if evidence:
        asked = f"{context.label.name} {code}" if context.label else code
        yield Candidate(code, start, end, asked, evidence)


def _evidence(code: str, form: Form, context: _Context) -> Evidence | None:
    is_labelled = context.label is not None and context.label.is_family
    is_near = context.is_list or context.has_code or is_labelled
    has_letter = any(map(str.isalpha, code))
    match form:
        case Form.CERTAIN:
            return Evidence.CERTAIN
        case Form.IDENTIFIER:
            return Evidence.EXACT
        case Form.COMPACT if context.is_list or is_labelled:
            return Evidence.CERTAIN
        case Form.COMPACT | Form.HEADING if is_near or (context.is_mention and "." in code):
            return Evidence.EXACT
        case Form.SHAPED:
            return Evidence.CERTAIN if context.is_list or is_labelled else Evidence.FAMILIAR
        case Form.SHORT if is_labelled:
            return Evidence.CERTAIN
        case Form.SHORT if context.is_list and (has_letter or context.label):
            return Evidence.EXACT
        case _:
            return None


def _ends_of_range(text: str) -> list[tuple[int, int]]:
    """Return the places of the two codes in ``RL.4.1-RL.4.3``."""
    for match in re.finditer("-", text):
        left, right = text[: match.start()], text[match.end() :]
        if form_of(left) is form_of(right) is Form.CERTAIN:
            return [(0, match.start()), (match.end(), len(text))]
    return []


def _codes_of_range(text: str) -> list[str]:
    """Return the codes of a range such as ``RL.4.1-3`` or ``3.NF.A.3a-c``."""
    if match := _RANGE.fullmatch(text):
        first, last = int(match["first"]), int(match["last"])
        codes = [f"{match['head']}{number}" for number in range(first, last + 1)]
    elif match := _RANGE_OF_PARTS.fullmatch(text):
        first, last = ord(match["first"]), ord(match["last"])
        codes = [f"{match['head']}{chr(letter)}" for letter in range(first, last + 1)]
    else:
        return []
    is_range = 1 < len(codes) <= _MOST_IN_A_RANGE and form_of(codes[0]) is Form.CERTAIN
    return codes if is_range else []
