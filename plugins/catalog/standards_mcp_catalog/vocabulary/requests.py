"""Texts that name standards: one, or several as people list them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .notation import codes_in, plain_text
from .readings import Reading, is_code, readings, unwrapped

_BETWEEN: Final = re.compile(r"[,;|\n\r\v\f\u2028\u2029]+")
_WORDS_BETWEEN: Final = re.compile(r"(?<=\s)(?:and|or|plus|&|\+)(?=\s)", re.IGNORECASE)
_MOST_WORDS: Final = 3
_TOO_SHORT: Final = re.compile(
    r"(?:\d{1,2}|[a-z])(?:\s+(?:and|or|&)\s+(?:\d{1,2}|[a-z]))?", re.IGNORECASE
)
_DIGIT: Final = re.compile(r"\d")
# A letter, a digit and a separator, but not "2-digit".
_LIKE_A_CODE: Final = re.compile(
    r"(?!\d+-[a-z]{2,}$)(?=[\w§.:()-]*\d)(?=[\w§.:()-]*[a-z])[\w§]+(?:[.:(-]+\w+\)*)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Request:
    """A text that names a standard, or parts that do so.

    Attributes:
        text: As it was written.
        readings: What the text may mean, the surest first.
        parts: What its parts name; they count where no reading of the whole is known.
    """

    text: str
    readings: tuple[Reading, ...]
    parts: tuple[Request, ...] = ()

    def every_reading(self) -> Iterator[Reading]:
        """Yield the readings of the text and of its parts."""
        yield from self.readings
        for part in self.parts:
            yield from part.every_reading()

    def names(self) -> list[str]:
        """Return the texts that each name one standard, if the parts count."""
        return [name for part in self.parts for name in part.names()] or [self.text]


def requests_in(text: str) -> Request:
    """Return what a text names: a code or an id, or several.

    Commas, semicolons, line ends and words such as "and" separate, and so do spaces between what
    is surely a code. The whole text comes first, since a code may have any of them. Nothing is
    raised for any text, and the time is proportional to its length.
    """
    pieces = [piece for each in _BETWEEN.split(text) if (piece := unwrapped(each))]
    if len(pieces) < 2:  # noqa: PLR2004
        return _piece(text.strip())
    parts = tuple(_part(each) for each in pieces if _may_name(each))
    if not any(_names_surely(part) for part in parts):
        parts = ()
    return Request(text.strip(), (Reading(text.strip()),), tuple(dict.fromkeys(parts)))


def _piece(text: str) -> Request:
    halves = [half for each in _WORDS_BETWEEN.split(text) if (half := unwrapped(each))]
    parts: tuple[Request, ...] = ()
    if len(halves) > 1 and any(map(_codes, halves)):
        parts = tuple(_part(each) for each in halves if _may_name(each))
        return Request(text, (Reading(text),), parts)
    return _words(text)


def _part(text: str) -> Request:
    # In a list "3.NF.1, 2" the number alone is no code, though somebody may have such codes.
    return Request(text, ()) if _TOO_SHORT.fullmatch(text) else _piece(text)


def _words(text: str) -> Request:
    found = readings(text)
    codes = _codes(text)
    if not codes or (len(codes) == 1 and len(found) > 2) or codes == [text]:  # noqa: PLR2004
        return Request(text, found)
    return Request(text, found, tuple(Request(code, readings(code)) for code in codes))


def _codes(text: str) -> list[str]:
    """Return the words of a text that are codes, if one of them is so beyond doubt."""
    words = [unwrapped(word) for word in re.split(r"\s+|(?<!/)/(?![/])", plain_text(text))]
    like = [word for word in words if is_code(word) or _LIKE_A_CODE.fullmatch(word)]
    return list(dict.fromkeys(like)) if any(map(is_code, like)) else []


def _may_name(piece: str) -> bool:
    words = len(piece.split())
    return (
        words == 1 or bool(_codes(piece)) or (words <= _MOST_WORDS and bool(_DIGIT.search(piece)))
    )


def _names_surely(part: Request) -> bool:
    return bool(part.parts) or bool(_codes(part.text)) or bool(codes_in(part.text))
