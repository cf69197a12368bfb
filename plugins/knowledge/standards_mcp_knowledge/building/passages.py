"""Divide the text below a heading into passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from standards_mcp_documents import Block

MAX_CODE_FACTOR: Final = 4
"""Code stays whole up to this multiple of the words of a passage."""

# Chinese and Japanese have no spaces between words; very long words are usually data.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]{1,60}")
_BLOCK_SEPARATOR: Final = "\n\n"


class _Piece(NamedTuple):
    """An unbreakable unit: a word or a block of code. Start and end are offsets in the section."""

    start: int
    end: int
    words: int
    is_code: bool


def cut(blocks: Sequence[Block], words: int, overlap: int) -> list[str]:
    """Return passages of at most *words* words, in order; one with a block of code may be longer.

    A passage begins with the last *overlap* words of the previous one, but repeats no code.
    """
    text = _BLOCK_SEPARATOR.join(block.text for block in blocks)
    pieces = list(_pieces(blocks, words * MAX_CODE_FACTOR))
    passages: list[str] = []
    first = end = 0
    while end < len(pieces):
        first = end - _repeated_words(pieces[first:end], min(overlap, words - pieces[end].words))
        end = _passage_end(pieces, first, end, words)
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
        start += len(block.text) + len(_BLOCK_SEPARATOR)


def _repeated_words(passage: Sequence[_Piece], limit: int) -> int:
    """Return the number of words at the end of a passage that the next one repeats."""
    count = 0
    while count < min(limit, len(passage) - 1) and not passage[-1 - count].is_code:
        count += 1
    return count


def _passage_end(pieces: Sequence[_Piece], first: int, end: int, words: int) -> int:
    """Return the end of a passage that begins at *first* and includes the piece at *end*."""
    count = end - first + pieces[end].words
    end += 1
    while end < len(pieces) and count + pieces[end].words <= words:
        count += pieces[end].words
        end += 1
    return end
