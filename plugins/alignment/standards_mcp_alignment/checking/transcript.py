r"""Make plain text of a pasted lesson, and keep the position of each character.

HTML tags, character references, marks and escapes of Markdown, invisible characters and unusual
dashes would hide codes: ``3.NF.<b>A.1</b>``, ``RST.9&ndash;10.1``, ``3\.NF\.A\.1``.
"""

from __future__ import annotations

import bisect
import html
import re
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog.vocabulary.notation import plain_text

_BLOCKS: Final = (
    "p|div|li|ul|ol|tr|table|thead|tbody|h[1-6]|br|hr|section|article|dt|dd|dl|blockquote|pre"
)
_CELLS: Final = "td|th"
_HIDDEN: Final = "script|style|template|head"
_INLINE: Final = (
    "a|abbr|b|body|big|center|cite|code|col|colgroup|del|em|figure|font|footer|form|header|html|i|img|input|ins"
    "|label|link|main|mark|meta|nav|o:p|s|small|span|strong|sub|sup|title|tt|u|wbr"
)
_MARKED: Final = re.compile(
    rf"""
    <!--
    | <(?P<end>/?)(?:(?P<block>{_BLOCKS})|(?P<cell>{_CELLS})|(?P<hidden>{_HIDDEN})|{_INLINE})
      (?=[\s/>])[^<>]{{0,4000}}>
    | &(?:\#[0-9]{{1,7}}|\#x[0-9a-f]{{1,6}}|[a-z][a-z0-9]{{1,30}});
    | \\(?=[.()\[\]_*\-\#:|])
    | (?<=[\w.])\*\*(?=[\w.])
    | (?P<other>[^\x00-\x7f]+)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LINE_ENDS: Final = re.compile(r"[\u2028\u2029\x85\x00-\x08\x0b-\x1f]")
_DIRECTIONAL: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The plain text of a lesson.

    Attributes:
        text: Without tags and invisible characters; a block of HTML is a line, and a cell of a
            table ends with a bar.
        has_directions: True if the lesson has characters that change the direction of text.
    """

    text: str
    has_directions: bool
    _starts: tuple[int, ...]
    _origins: tuple[int, ...]  # one more than *_starts*: the end of the lesson

    def origin(self, position: int) -> int:
        """Return the position in the lesson of a character of `text`."""
        piece = bisect.bisect_right(self._starts, position) - 1
        first, after = self._origins[piece], self._origins[piece + 1]
        # One character may have become several: a fraction such as 1/4, or a mark of three dots.
        return max(first, min(first + position - self._starts[piece], after - 1))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions in the lesson of the part from *start* to *end*, not empty."""
        return self.origin(start), self.origin(end - 1) + 1


def transcribe(lesson: str) -> Transcript:
    """Return the plain text of a lesson, in time in proportion to its length."""
    pieces, position = _Pieces(), 0
    unclosed = set[str]()
    for match in _MARKED.finditer(lesson):
        if match.start() < position:
            continue  # inside a comment or a script
        if match["other"] and _visible(match[0]) == match[0]:
            continue
        pieces.add(lesson[position : match.start()], position)
        if match["other"]:
            for index, char in enumerate(match[0], match.start()):
                pieces.add(_visible(char), index)
        else:
            pieces.add(_replacement(match), match.start())
        position = _end_of_hidden(lesson, match, unclosed)
    pieces.add(lesson[position:], position)
    has_directions = not lesson.isascii() and not _DIRECTIONAL.isdisjoint(lesson)
    return Transcript(
        "".join(pieces.texts),
        has_directions,
        tuple(pieces.starts or (0,)),
        (*(pieces.origins or (0,)), len(lesson)),
    )


class _Pieces:
    """Collects the pieces of a transcript with their positions."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.origins: list[int] = []
        self._length = 0

    def add(self, text: str, origin: int) -> None:
        if text:
            self.texts.append(text)
            self.starts.append(self._length)
            self.origins.append(origin)
            self._length += len(text)


def _end_of_hidden(lesson: str, match: re.Match[str], unclosed: set[str]) -> int:
    """Return the end of the comment or the script that begins with *match*, or of the match."""
    ending = "-->" if match[0] == "<!--" else f"</{match['hidden']}" if match["hidden"] else ""
    if match["end"] or not ending or ending.lower() in unclosed:
        return match.end()
    found = re.compile(re.escape(ending), re.IGNORECASE).search(lesson, match.end())
    if found is None:
        # A search that failed would fail for each later tag, too.
        unclosed.add(ending.lower())
        return match.end()
    return found.end() if match[0] == "<!--" else found.start()


def _replacement(match: re.Match[str]) -> str:
    text = match[0]
    if match["block"] or text == "<!--":
        return "\n"
    if match["cell"]:
        return " | " if match["end"] else ""
    return _visible(html.unescape(text)) if text.startswith("&") else ""


def _visible(text: str) -> str:
    """Return *text* as `plain_text`, with separators of lines as line ends."""
    return _LINE_ENDS.sub("\n", plain_text(text))
