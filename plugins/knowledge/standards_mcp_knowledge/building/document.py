"""A document: the text of a file in sections, each below a heading."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


class DocumentError(Exception):
    """A file cannot be read as a document; the text is the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown. Code is kept together as far as possible."""

    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """The text between two headings, with the line of the first if the file has it as text.

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
            line: The line of the heading in the text.
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
    """Return *text* with its white space as single spaces."""
    return " ".join(clean(text).split())
