"""Cuts the blocks of a section into passages of a bounded number of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .document import Block

WHOLE_CODE: Final = 4
"""Code stays whole up to so many times the words of a passage."""

# Chinese and Japanese are written without spaces, and what is longer than a word is often data.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]{1,60}")
_BETWEEN: Final = "\n\n"


class _Piece(NamedTuple):
    """What is not cut: a word, or code. Start and end are places in the section's text."""

    start: int
    end: int
    words: int
    is_code: bool


def cut(blocks: Sequence[Block], words: int, overlap: int) -> list[str]:
    """Return passages of at most *words* words, in order.

    A passage begins with the last *overlap* words of the one before it, but repeats no code.
    """
    text = _BETWEEN.join(block.text for block in blocks)
    pieces = list(_pieces(blocks, words * WHOLE_CODE))
    passages: list[str] = []
    first = end = 0
    while end < len(pieces):
        first = end - _repeated(pieces[first:end], min(overlap, words - pieces[end].words))
        end = _end_of(pieces, first, end, words)
        passages.append(text[pieces[first].start : pieces[end - 1].end])
    return passages


def _pieces(blocks: Sequence[Block], longest_code: int) -> Iterator[_Piece]:
    start = 0
    for block in blocks:
        spans = [match.span() for match in _WORD.finditer(block.text)]
        if block.is_code and 0 < len(spans) <= longest_code:
            yield _Piece(start, start + len(block.text), len(spans), is_code=True)
        else:
            for left, right in spans:
                yield _Piece(start + left, start + right, 1, is_code=False)
        start += len(block.text) + len(_BETWEEN)


def _repeated(passage: Sequence[_Piece], most: int) -> int:
    """Return how many words at the end of a passage the next one repeats."""
    count = 0
    while count < min(most, len(passage) - 1) and not passage[-1 - count].is_code:
        count += 1
    return count


def _end_of(pieces: Sequence[_Piece], first: int, end: int, words: int) -> int:
    """Return where a passage ends that begins at *first* and has the piece at *end* at least."""
    count = end - first + pieces[end].words
    end += 1
    while end < len(pieces) and count + pieces[end].words <= words:
        count += pieces[end].words
        end += 1
    return end
