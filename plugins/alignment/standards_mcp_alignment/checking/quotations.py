"""Compare the words next to a code with the official text of its standard."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from standards_mcp_catalog.vocabulary.notation import plain_text

_Block = tuple[int, int, int]
"""A run of equal words: its place in the official text, in the passage, and its length."""

_WORD: Final = re.compile(r"[^\W_]+")
_SENTENCE_END: Final = re.compile(r"[.;!?\n|\"\u201c\u201d)(\]]")
_FULL_STOP: Final = re.compile(r"[.!?][\s\"\u201d)]")
_MOST_BETWEEN: Final = 2
_STEM: Final = re.compile(
    r"\W*(?:(?:the )?(?:students?|learners?|pupils?|children|i|we|they|swbat|tswbat)\b"
    r"(?: (?:will|can|should|must|shall|are|is)\b)?(?: be)?(?: able| expected)?(?: to\b)?"
    r"|which (?:says|asks|states)(?: that)?|says|states|that|to)\W*",
    re.IGNORECASE,
)
_LEAST_WORDS: Final = 5
"""Fewer equal words are not a quotation, unless they are the whole official text."""
_LEAST_SHARE: Final = 0.6
_SHORT: Final = 12
_LEAST_SHARE_OF_SHORT: Final = 0.7
"""Share of equal words in an official text with fewer than twelve words."""
_LEAST_RUN: Final = 6
_LEAST_SHARE_OF_RUN: Final = 0.4
"""An unbroken run of so many words, and of this share of the text, is a quotation of a part."""
_MOST_ADDED: Final = 4
"""So many words after a whole quotation are a change of it; more are a sentence that goes on."""
_MOST_COMPARED: Final = 120
"""Words of an official text and of a passage that are compared."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """An official text that a passage quotes.

    Attributes:
        start: Position in the passage.
        end: Position after it.
        words: The number of equal words.
        diff: The differences in the form of ``git diff --word-diff``, or "" if there are none:
            ``[-official words-]{+words of the lesson+}``.
        is_whole: True if all words of the official text are quoted.
    """

    start: int
    end: int
    words: int
    diff: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Words:
    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> _Words:
        matches = list(islice(_WORD.finditer(text), _MOST_COMPARED))
        words = tuple(match[0].casefold() for match in matches)
        return cls(text, words, tuple(match.span() for match in matches))

    def between(self, start: int, end: int) -> str:
        """Return the text from one word to another, which is not included."""
        return self.text[self.spans[start][0] : self.spans[end - 1][1]] if start < end else ""


def find_quotation(official: str, passage: str, *, is_after_code: bool) -> Quotation | None:
    """Return the quotation of an official text in a passage, or None.

    An unbroken part of the text is a quotation without differences. Case and punctuation do not
    matter.

    Args:
        is_after_code: True if the passage begins after the code, False if it ends before it.
    """
    left, right = _Words.of(plain_text(official)), _Words.of(passage)
    blocks = _without_stray_words(_blocks(left.words, right.words), left, right)
    if not blocks:
        return None
    equal = sum(size for _, _, size in blocks)
    (first_left, first_right, _), (last_left, last_right, last_size) = blocks[0], blocks[-1]
    end_left, end_right = last_left + last_size, last_right + last_size
    longest = max(size for _, _, size in blocks)
    is_whole = equal == len(left.words) and len(blocks) == 1
    share = _LEAST_SHARE_OF_SHORT if len(left.words) < _SHORT else _LEAST_SHARE
    is_enough = equal >= max(_LEAST_WORDS, share * len(left.words)) or longest >= max(
        _LEAST_RUN, _LEAST_SHARE_OF_RUN * len(left.words)
    )
    if not is_whole and (not is_enough or equal < _LEAST_SHARE * (end_right - first_right)):
        return None
    start_right = _start(right, first_left, first_right, is_after_code=is_after_code)
    stop_right = _stop(right, len(left.words) - end_left, end_right)
    start_left = 0 if start_right < first_right and first_left else first_left
    stop_left = (
        len(left.words) if stop_right > end_right and end_left < len(left.words) else end_left
    )
    diff = _diff(left, right, blocks, (start_left, stop_left), (start_right, stop_right))
    return Quotation(
        right.spans[start_right][0],
        right.spans[stop_right - 1][1],
        equal,
        diff,
        is_whole and not diff,
    )


def _blocks(left: Sequence[str], right: Sequence[str]) -> list[_Block]:
    """Return (start, start, size) of equal runs of words around the longest one."""
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    anchor = matcher.find_longest_match()
    if not anchor.size:
        return []
    slack = max(3, len(left) // 4)
    low = max(0, anchor.b - anchor.a - slack)
    high = min(len(right), anchor.b + len(left) - anchor.a + slack)
    matcher = SequenceMatcher(None, left, right[low:high], autojunk=False)
    return [(a, b + low, size) for a, b, size in matcher.get_matching_blocks() if size]


def _without_stray_words(blocks: list[_Block], left: _Words, right: _Words) -> list[_Block]:
    """Return the blocks without single words such as "the" beyond the quotation."""
    while len(blocks) > 1 and blocks[0][2] == 1 and _is_apart(blocks[0], blocks[1], left, right):
        blocks = blocks[1:]
    while len(blocks) > 1 and blocks[-1][2] == 1 and _is_apart(blocks[-2], blocks[-1], left, right):
        blocks = blocks[:-1]
    return blocks


def _is_apart(block: _Block, following: _Block, left: _Words, right: _Words) -> bool:
    """Return True if many words are between two blocks, or the end of a sentence in the passage."""
    gap = max(following[0] - block[0], following[1] - block[1]) - block[2]
    official = left.text[left.spans[block[0] + block[2] - 1][1] : left.spans[following[0]][0]]
    quoted = right.text[right.spans[block[1] + block[2] - 1][1] : right.spans[following[1]][0]]
    ends = _FULL_STOP.search(quoted) is not None and _FULL_STOP.search(official) is None
    return gap > _MOST_BETWEEN or ends


def _start(right: _Words, missing: int, first: int, *, is_after_code: bool) -> int:
    """Return the first word of the quotation: before *first* if the beginning is changed."""
    if not first:
        return first
    begin = 0
    boundaries = [
        match.end() for match in _SENTENCE_END.finditer(right.text, 0, right.spans[first][0])
    ]
    if boundaries:
        begin = next(index for index in range(first + 1) if right.spans[index][0] >= boundaries[-1])
    text_start = boundaries[-1] if boundaries else 0
    if begin < first and (stem := _STEM.match(right.text, text_start, right.spans[first][0])):
        begin = next(index for index in range(first + 1) if right.spans[index][0] >= stem.end())
    lead = first - begin
    most = missing + 2 if missing else 3 if is_after_code and not boundaries else 0
    return begin if lead <= most else first


def _stop(right: _Words, missing: int, end: int) -> int:
    """Return the end of the quotation, after *end* if the official ending is changed."""
    limit = _SENTENCE_END.search(right.text, right.spans[end - 1][1])
    stop = end
    while stop < len(right.words) and (limit is None or right.spans[stop][0] < limit.start()):
        stop += 1
    tail = stop - end
    most = missing + 2 if missing else _MOST_ADDED
    return stop if tail <= most else end


def _diff(
    left: _Words,
    right: _Words,
    blocks: Sequence[_Block],
    left_span: tuple[int, int],
    right_span: tuple[int, int],
) -> str:
    parts, at_left, at_right, has_changes = list[str](), left_span[0], right_span[0], False
    for start_left, start_right, size in (*blocks, (left_span[1], right_span[1], 0)):
        removed, added = left.between(at_left, start_left), right.between(at_right, start_right)
        change = (f"[-{removed}-]" if removed else "") + (f"{{+{added}+}}" if added else "")
        has_changes = has_changes or bool(change)
        at_left, at_right = start_left + size, start_right + size
        parts += [change, left.between(start_left, at_left)]
    return " ".join(" ".join(filter(None, parts)).split()) if has_changes else ""
