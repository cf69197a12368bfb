"""Find the parts of a lesson that may be codes.

A lesson has many texts that only look like codes: versions, rooms, formulas, part numbers. So the
form of a text and the words around it decide together how much the catalog must confirm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import islice
from typing import Final

from standards_mcp_catalog.vocabulary.families import LABELS, family_of

from .forms import Form, form_of
from .surroundings import (
    Label,
    Labels,
    heading_end,
    is_named,
    is_other_heading,
    is_part_of_name,
    mentions_standards,
)

_MOST_IN_A_LINE: Final = 1_000
_MOST_IN_A_RANGE: Final = 12


class Evidence(IntEnum):
    """The evidence that a text is a code.

    Attributes:
        EXACT: It is one only if a standard has this code.
        FAMILIAR: It is one only if a standard has this code, or one that begins like it.
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
_HYPHENATED_NUMBER: Final = re.compile(r"\d+-\d+")
_ITEM_END: Final = re.compile(r"[\s*_`]*(?:[,;:|)\]]|[.]?$|-\s)")
_WORD_IN_CODE: Final = re.compile(r"[a-z]{4}")


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

    label: Label | None
    is_list: bool
    is_item: bool
    is_named: bool
    has_code: bool
    is_mention: bool


def candidates(text: str) -> Iterator[Candidate]:
    """Yield the parts of a transcript that may be codes, in their order."""
    position = 0
    is_list = is_heading_alone = False
    label: Label | None = None
    for line in text.split("\n"):
        end = heading_end(line)
        if not line.strip():
            is_list = is_list and is_heading_alone  # a list may follow after a blank line
        elif end:
            is_list, label = True, Labels(line[:end]).before(end)
            is_heading_alone = next(_tokens(line), None) is None
        else:
            is_list = is_list and not is_other_heading(line)
            is_heading_alone = False
        for each in _in_line(line, end if is_list else len(line), label):
            yield replace(each, start=position + each.start, end=position + each.end)
        position += len(line) + 1


def _tokens(line: str) -> Iterator[tuple[re.Match[str], Form]]:
    for match in _TOKEN.finditer(line):
        form = form_of(match[0])
        if form and not is_part_of_name(line, *match.span()):
            yield match, form


def _in_line(line: str, list_start: int, label: Label | None) -> Iterator[Candidate]:
    """Yield the candidates of a line, with positions in it.

    Args:
        list_start: The position where a list of codes begins.
        label: The label of the list.
    """
    tokens = list(islice(_tokens(line), _MOST_IN_A_LINE))
    has_code = any(form is Form.CERTAIN for _, form in tokens)
    is_mention = bool(tokens) and mentions_standards(line)
    labels = Labels(line)
    for match, form in tokens:
        start, end = match.span()
        is_list = start >= list_start
        is_number = _HYPHENATED_NUMBER.fullmatch(match[0]) is not None
        context = _Context(
            label=_label_of(labels, start, form, label if is_list else None),
            is_list=is_list,
            is_item=is_list and not is_number and _ITEM_END.match(line, end) is not None,
            is_named=is_named(line, start),
            has_code=has_code,
            is_mention=is_mention,
        )
        for each in _candidates_of(match[0], form, context):
            yield replace(each, start=start + each.start, end=start + each.end)


def _label_of(labels: Labels, start: int, form: Form, label_of_list: Label | None) -> Label | None:
    label = labels.before(start)
    # "TEKS 3.4A, 3.5B" has two codes of Texas, but 3.NF.A.1 after them is not one.
    if label and (label.is_adjacent or form is Form.SHORT):
        return label
    return label_of_list if form in (Form.SHORT, Form.SHAPED) else None


def _candidates_of(text: str, form: Form, context: _Context) -> Iterator[Candidate]:
    """Yield the codes of a token, with positions in it: one, several in a range, or none."""
    codes = [(text, 0, len(text))]
    if form is Form.SHAPED and (parts := _ends_of_range(text) or _codes_of_range(text)):
        codes, form = parts, Form.CERTAIN
    for code, start, end in codes:
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
    # Words in a code are a name, which only the catalog knows: "6-8.Algorithms and Programming".
    is_name = form is Form.SHAPED and _WORD_IN_CODE.search(code) is not None
    is_certain = {
        Form.CERTAIN: True,
        Form.COMPACT: is_announced,
        Form.SHAPED: is_announced and not is_name,
        Form.SHORT: is_labelled,
    }
    may_exist = {
        Form.COMPACT: is_near,
        Form.HEADING: is_near,
        Form.NAMED: True,
        Form.SHORT: context.is_item or context.is_named,
    }
    if is_certain.get(form):
        return Evidence.CERTAIN
    if form is Form.SHAPED:
        return Evidence.FAMILIAR
    return Evidence.EXACT if may_exist.get(form) else None


def _ends_of_range(text: str) -> list[tuple[str, int, int]]:
    """Return the two codes in ``RL.4.1-RL.4.3`` with their places."""
    for match in re.finditer("-", text):
        left, right = text[: match.start()], text[match.end() :]
        if form_of(left) is form_of(right) is Form.CERTAIN:
            return [(left, 0, match.start()), (right, match.end(), len(text))]
    return []


def _codes_of_range(text: str) -> list[tuple[str, int, int]]:
    """Return the codes of a range such as ``RL.4.1-3`` or ``3.NF.A.3a-c``, each with its place."""
    if match := _RANGE.fullmatch(text):
        numbers = range(int(match["first"]), int(match["last"]) + 1)
        codes = [f"{match['head']}{number}" for number in numbers]
    elif match := _RANGE_OF_PARTS.fullmatch(text):
        letters = range(ord(match["first"]), ord(match["last"]) + 1)
        codes = [f"{match['head']}{chr(letter)}" for letter in letters]
    else:
        return []
    is_range = 1 < len(codes) <= _MOST_IN_A_RANGE and form_of(codes[0]) is Form.CERTAIN
    return [(code, 0, len(text)) for code in codes] if is_range else []
