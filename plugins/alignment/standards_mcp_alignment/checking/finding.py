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

from standards_mcp_catalog.vocabulary.families import LABELS, family_of
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
_NAMED: Final = re.compile(
    r"\b(?:standards?|benchmarks?|objectives?|expectations?|teks|sols?|codes?)"
    r"(?:\s+(?:no\.?|nr\.?|number))?[\s:#*_`(]{1,4}$",
    re.IGNORECASE,
)
_HYPHENATED: Final = re.compile(r"\d+-\d+")
_ITEM_END: Final = re.compile(r"[\s*_`]*(?:[,;:|)\]]|[.]?$|-\s)")
_WORD_IN_CODE: Final = re.compile(r"[a-z]{4}")
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
        is_item: True if the token also is an item of such a list, and not a number in its words.
        is_named: True directly after a word such as "standard".
        has_code: True if the line has a certain code.
        is_mention: True if the line has a word such as "standards".
    """

    label: _Label | None
    is_list: bool
    is_item: bool
    is_named: bool
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
            header_label = _label_before(line, header.end())[0]
        elif _OTHER_HEADER.match(line):
            is_list, header_label = False, None
        if line.strip():
            was_header = bool(header) and not tokens
        has_code = any(form is Form.CERTAIN for _, form in tokens)
        is_mention = bool(tokens) and bool(_MENTION.search(line))
        for match, form in tokens:
            listed = is_list and (not header or match.start() >= header.end())
            label = _label_of(line, match.start(), form, header_label if listed else None)
            is_item = (
                listed
                and _HYPHENATED.fullmatch(match[0]) is None
                and _ITEM_END.match(line, match.end()) is not None
            )
            before = line[max(0, match.start() - _LONGEST_VETO) : match.start()]
            is_named = bool(_NAMED.search(before))
            context = _Context(label, listed, is_item, is_named, has_code, is_mention)
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
    start, end = match.span()
    if _FILE.search(match[0]) or re.match(r"_+[^\W_]|@", line[end : end + 3]):
        return True
    if match[0].upper() in ("MP3", "MP4") and _RECORDING.match(line, end):
        return True
    prefix = _WORD_START.split(line[max(0, start - _LONGEST_WORD) : start])[-1]
    before = line[max(0, start - _LONGEST_VETO) : start]
    # "Standard number 3.NF.1" is a code, in spite of "number".
    return bool(
        _ADDRESS.search(prefix) or (_VETO.search(before) and not _MENTION.search(before))
    )


def _label_before(line: str, position: int) -> tuple[_Label | None, bool]:
    """Return the last label before a position with only codes between, and if it is adjacent."""
    begin = max(0, position - _LONGEST_LABEL_DISTANCE)
    for match in reversed(list(_LABEL.finditer(line, begin, position))):
        between = line[match.end() : position]
        is_adjacent = _BESIDE.fullmatch(between) is not None
        if is_adjacent or (match["family"] and _BETWEEN_CODES.fullmatch(between)):
            name = match[0][:-1] if match[0].casefold() == "sols" else match[0]
            return _Label(name, is_family=bool(match["family"])), is_adjacent
    return None, False


def _label_of(line: str, position: int, form: Form, default: _Label | None) -> _Label | None:
    """Return the label that is valid for a token; *default* is the label of the heading."""
    label, is_adjacent = _label_before(line, position)
    # "TEKS 3.4A, 3.5B" has two codes of Texas, but 3.NF.A.1 after them is not one.
    if label and (is_adjacent or form is Form.SHORT):
        return label
    return default if form in (Form.SHORT, Form.SHAPED) else None


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
    label = context.label
    if label and label.is_family and family_of(code) not in {None, LABELS[label.name.upper()]}:
        label = None
    if evidence := _evidence(code, form, replace(context, label=label)):
        asked = f"{label.name} {code}" if label else code
        yield Candidate(code, start, end, asked, evidence)


def _evidence(code: str, form: Form, context: _Context) -> Evidence | None:
    is_labelled = context.label is not None and context.label.is_family
    is_announced = context.is_list or context.is_named or is_labelled
    is_near = is_announced or context.has_code or (context.is_mention and "." in code)
    evidence: Evidence | None = None
    if form is Form.CERTAIN or (is_announced and form in (Form.COMPACT, Form.SHAPED)):
        evidence = Evidence.CERTAIN
    elif form is Form.SHORT and is_labelled:
        evidence = Evidence.CERTAIN
    elif form is Form.SHAPED:
        evidence = Evidence.FAMILIAR
    elif form is Form.NAMED or (form in (Form.COMPACT, Form.HEADING) and is_near):
        evidence = Evidence.EXACT
    elif form is Form.SHORT and (context.is_item or context.is_named):
        evidence = Evidence.EXACT
    # Words in a code are a name, which only the catalog knows: "6-8.Algorithms and Programming".
    if evidence is Evidence.CERTAIN and form is Form.SHAPED and _WORD_IN_CODE.search(code):
        return Evidence.FAMILIAR
    return evidence


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
