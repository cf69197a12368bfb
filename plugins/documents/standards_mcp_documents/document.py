"""Documents as sections of text below headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".html": "HTML",
    ".htm": "HTML",
    ".txt": "text",
    ".rst": "reStructuredText",
    ".pdf": "a PDF document",
    ".docx": "a Word document",
}
"""The types of documents by their lowercase suffixes."""
MAX_CHARACTERS: Final = 20_000_000
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


class DocumentError(Exception):
    """A document cannot be read; the message is the reason, with "it" for the document."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list item, table cell or piece of code.

    Attributes:
        text: Plain text of PDF and Word files, else Markdown or reStructuredText.
        mark: The Markdown mark of a heading or list item in a Word document, such as ``## ``.
        is_code: True for code, which should be kept together.
        cell: The number of the row in the document, and of the cell in the row, for a block in a
            table of a Word document.
    """

    text: str
    mark: str = ""
    is_code: bool = False
    cell: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text below it; the first block is the heading, if it is in the text.

    Attributes:
        heading: Plain text, empty before the first heading. A page of a PDF document has its
            bookmark and its number.
    """

    heading: str
    blocks: tuple[Block, ...]

    def markdown_blocks(self) -> Iterator[Block]:
        """Yield the blocks with their marks; a table becomes one block with a line for each row."""
        for is_table, blocks in groupby(self.blocks, lambda block: block.cell is not None):
            if is_table:
                yield Block("\n".join(f"| {' | '.join(row)} |" for row in _rows(blocks)))
            else:
                for block in blocks:
                    yield Block(block.mark + block.text, is_code=block.is_code)


@dataclass(frozen=True, slots=True)
class Document:
    """A file that has been read.

    Attributes:
        title: Plain text; empty if the file has no title.
        sections: At least one.
    """

    title: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """The text without marks; each cell of a table is a line."""
        lines: list[str] = []
        for is_table, blocks in groupby(self._blocks(), lambda block: block.cell is not None):
            if is_table:
                lines += [cell for row in _rows(blocks) for cell in row]
            else:
                lines += [block.text for block in blocks]
        return "\n".join(lines)

    @property
    def marked_text(self) -> str:
        """The text with marks; each paragraph in a cell is a line."""
        return "\n".join(block.mark + block.text for block in self._blocks())

    def _blocks(self) -> Iterator[Block]:
        return (block for section in self.sections for block in section.blocks)


def _rows(blocks: Iterator[Block]) -> Iterator[list[str]]:
    """Yield the rows of a table, as lists of cells in one line each."""
    for _, row in groupby(blocks, lambda block: block.cell and block.cell[0]):
        cells = groupby(row, lambda block: block.cell)
        yield [one_line(" ".join(block.text for block in cell)) for _, cell in cells]


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
        self._characters = 0

    def start(self, heading: str, level: int = 0, block: Block | None = None) -> None:
        """Begin a section.

        Args:
            level: 1 for the most important headings, 0 for a heading that is not in the text.
            block: The heading as it is in the text; None if it is not.
        """
        if self._has_text:
            self._close()
        self._heading = one_line(heading)
        if level == 1 and not self._title:
            self._title = self._heading
        if block is not None:
            self._blocks.append(block)

    def add(
        self,
        text: str,
        mark: str = "",
        *,
        is_code: bool = False,
        cell: tuple[int, int] | None = None,
    ) -> None:
        """Append a block to the section, unless it is blank.

        Raises:
            DocumentError: The document has too much text.
        """
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise DocumentError(f"it has more than {MAX_CHARACTERS:,} characters; split it")
        text = clean(text)
        if text.strip():
            self._blocks.append(Block(text, mark, is_code, cell))
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
