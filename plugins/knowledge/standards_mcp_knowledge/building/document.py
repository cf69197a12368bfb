"""Documents as sections of text below headings, and their division into passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")

MAX_CODE_FACTOR: Final = 4
"""Code stays whole up to this multiple of the words of a passage."""

# Chinese and Japanese have no spaces between words; very long words are usually data.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]{1,60}")
_BLOCK_SEPARATOR: Final = "\n\n"


class DocumentError(Exception):
    """A file cannot be read as a document; the message is the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown. Code is kept together as far as possible."""

    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text below it; the first block is the heading's line, if there is one.

    Attributes:
        heading: Plain text, empty before the first heading.
    """

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A file that has been read.

    Attributes:
        title: Plain text; empty if the file has no title.
    """

    title: str
    sections: tuple[Section, ...]


class Outline:
    """Collects blocks below headings, in their order.

    A heading without text is joined with the next section, because alone it answers no question.

    Args:
        title: The title in the metadata of the file; by default the first heading of level 1.
    """

    def __init__(self, title: str = "") -> None:
        self._title = one_line(title)
        self._sections: list[Section] = []
        self._heading = ""
        self._blocks: list[Block] = []
        self._has_text = False

    def start(self, heading: str, level: int = 0, line: str = "") -> None:
        """Begin a section.

        Args:
            level: 1 for the most important headings, 0 for a heading that is not in the text.
            line: The heading as it is in the text; empty if it is not.
        """
        if self._has_text:
            self._close()
        self._heading = one_line(heading)
        if level == 1 and not self._title:
            self._title = self._heading
        if line:
            self._blocks.append(Block(clean(line)))

    def add(self, text: str, *, is_code: bool = False) -> None:
        """Append a block to the section, unless it is blank."""
        text = clean(text)
        if text.strip():
            self._blocks.append(Block(text, is_code))
            self._has_text = True

    def document(self) -> Document:
        """Return the document of all blocks."""
        if self._blocks:
            self._close()
        return Document(self._title, tuple(self._sections))

    def _close(self) -> None:
        self._sections.append(Section(self._heading, tuple(self._blocks)))
        self._blocks, self._has_text = [], False


def clean(text: str) -> str:
    """Return *text* with line feeds as line ends, and without control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    return _CONTROL.sub(" ", text).rstrip().lstrip("\n")


def one_line(text: str) -> str:
    """Return *text* with each run of white space as one space."""
    return " ".join(clean(text).split())


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
