"""Parse numbers in words and digits, with bounds such as "at least", "or more" and "under".

    number:  [bound] values [bound]
    values:  5 | 1,000 | .5 | 2.5 | five | twenty-five | 3-5 | 3 to 5 | two million | five (5)
             | two and a half | half a dozen | a year | half a year | several years
    bound:   at least, over, under, up to, <, <=, >, >=, +, -plus, or more, or later, ...

"A year" is 1, and "several years" is at least 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from .tokens import MULTIPLES, NUMBERS, UNITS, WORDS, Token, texts

_THOUSANDS: Final = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_RANGE: Final = frozenset(("-", "\u2013", "to", "bis"))
_NEGATIONS: Final = frozenset(("no", "not"))
_BOUNDS: Final = WORDS["above"] | WORDS["below"] | WORDS["least"] | WORDS["most"]
_MARKS: Final = _BOUNDS | WORDS["about"] | _NEGATIONS | {"up", "bis"}
_MARKS_AFTER: Final = frozenset(("max", "maximum", "min", "minimum"))
_BETWEEN_MARKS: Final = frozenset(("a", "an", "at", "of", "than", "the", "to", "zu"))
_BEFORE_A_UNIT: Final = _MARKS.union(
    ("and", "for", "had", "has", "have", "of", "or", "spent", "than", "with")
)
_OR_MORE: Final = WORDS["above"] | {"higher", "later", "newer", "plus"}
_MARK_WORDS: Final = 5
_MAX_NUMBER_PARTS: Final = 3  # as in "two hundred thousand"; longer chains would take too long


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or a range such as "3 to 5".

    Attributes:
        place: The place of the first digits or word, such as "half" in "half a year".
        start: The place of the first token with the bound, such as "at" in "at least five".
        end: The place after the last token with the bound, such as "more" in "five or more".
        marks: The words of the bound, such as "least" or "under".
    """

    low: float
    high: float
    place: int
    start: int
    end: int
    marks: frozenset[str]

    def bounded_at(self, tokens: Sequence[Token], place: int) -> Number:
        """Return the number with the bound that begins at a place, such as "or more", if any."""
        marks, end = _marks_after(tokens, place)
        return replace(self, end=end, marks=self.marks | marks)

    def bounds(self, *, up_to_is_limit: bool) -> tuple[float, float]:
        """Return the smallest and the greatest possible value.

        Args:
            up_to_is_limit: True to read "up to" as "at most": "up to ten years" may be no year, but
                of "teams of up to ten", one had ten.
        """
        is_negated = bool(self.marks & _NEGATIONS)
        if self.marks & WORDS["above"]:  # not above: at most
            if is_negated:
                return 0, self.high
            return math.nextafter(self.low, math.inf), math.inf
        if self.marks & WORDS["below"]:  # not below: at least
            return (self.low, math.inf) if is_negated else (0, math.nextafter(self.high, 0))
        is_up_to = self.marks >= {"up", "to"} or "bis" in self.marks
        if self.marks & WORDS["most"] or (up_to_is_limit and is_up_to):
            return 0, self.high
        return self.low, math.inf if self.marks & WORDS["least"] else self.high


def number_value(token: Token) -> float | None:
    """Return the value of a number, None for other tokens."""
    if token.kind == "number":
        digits = token.text
        if _THOUSANDS.fullmatch(digits):
            return float(re.sub("[.,]", "", digits))
        whole, *rest = re.split("[.,\u00b7]", digits)
        return float(f"{whole}.{''.join(rest) or 0}")
    return float(NUMBERS[token.text]) if token.text in NUMBERS else None


def is_number(tokens: Sequence[Token], place: int) -> bool:
    """Return True for a number, and for a unit that implies one, such as "a year"."""
    return number_value(tokens[place]) is not None or _implied_number(tokens, place) is not None


def number_at(tokens: Sequence[Token], place: int) -> Number:
    """Return the number whose first digit or word is at a place, or that a unit there implies."""
    implied = _implied_number(tokens, place)
    low, high, end = (*implied[:2], place) if implied else _values(tokens, place)
    first = implied[2] if implied else place
    if first == place and texts(tokens, place - 2, place) in (["half", "a"], ["half", "an"]):
        low, high, first = low / 2, high / 2, place - 2
    start = _bound_start(tokens, first)
    before = frozenset(texts(tokens, start, first))
    return Number(low, high, first, start, end, before).bounded_at(tokens, end)


def _implied_number(tokens: Sequence[Token], place: int) -> tuple[float, float, int] | None:
    """Return low and high of "a year" or "several years", and the place of the first word."""
    unit = tokens[place].text
    if UNITS.get(unit, ("", 0))[0] != "month":
        return None
    match texts(tokens, place - 2, place):
        case [*_, several] if several in WORDS["several"]:
            return 2, math.inf, place - 1
        case [several, "of"] if several in WORDS["several"]:
            return 2, math.inf, place - 2
        case ["half", "a" | "an"]:
            return 0.5, 0.5, place - 2
        case [*_, "a" | "an"] if _is_amount(tokens, place):
            return 1, 1, place - 1
        case _:
            return (1, 1, place) if unit in ("decade", "decades") else None


def _is_amount(tokens: Sequence[Token], unit: int) -> bool:
    """Return True for "a year" as an amount, False for a rate as in "ten visits a year"."""
    if unit < 2:  # noqa: PLR2004
        return True
    before = tokens[unit - 2]
    if texts(tokens, unit + 1, unit + 2) == ["of"]:  # finished a year of nursing
        return before.kind == "word" and before.text not in MULTIPLES.keys() | UNITS.keys()
    return before.kind == "break" or before.text in _BEFORE_A_UNIT


def _bound_start(tokens: Sequence[Token], place: int) -> int:
    """Return the place of the first word of the bound before a number, *place* without one."""
    start = place - 1 if place and tokens[place - 1].kind == "sign" else place
    for before in range(start - 1, max(-1, start - 1 - _MARK_WORDS), -1):
        if tokens[before].text in _MARKS:
            start = before
        elif tokens[before].text not in _BETWEEN_MARKS:
            break
    while start and start < place and tokens[start - 1].text in ("a", "an", "at", "the"):
        start -= 1  # at least
    return start


def _values(tokens: Sequence[Token], start: int) -> tuple[float, float, int]:
    """Return low and high of a number or range, and the place after its last token."""
    value = number_value(tokens[start])
    if value is None:
        return 0, math.inf, start
    low, high, place = value, value, start + 1 + _repetition_length(tokens, start, value)
    joins = _RANGE | {"and"} if start and tokens[start - 1].text == "between" else _RANGE
    for _ in range(_MAX_NUMBER_PARTS):
        following = tokens[place : place + 2]
        if not following:
            break
        if texts(tokens, place, place + 3) == ["and", "a", "half"]:
            low, high, place = low + 0.5, high + 0.5, place + 3
            continue
        if (factor := MULTIPLES.get(following[0].text)) is not None:
            low, high, place = low * factor, high * factor, place + 1
            continue
        more = number_value(following[1]) if len(following) > 1 else None
        if more is None or following[0].text not in joins:
            break
        if tokens[start].kind == "word" and value % 10 == 0 and more < 10:  # noqa: PLR2004
            low = high = value + more  # twenty-five
        else:
            high = max(high, more)
        place += 2
    return low, high, place


def _repetition_length(tokens: Sequence[Token], start: int, value: float) -> int:
    """Return the number of tokens that repeat a number: three in "two (2)"."""
    brackets = texts(tokens, start + 1, start + 4)[::2]
    is_repeated = brackets == ["(", ")"]
    return 3 if is_repeated and number_value(tokens[start + 2]) == value else 0


def _marks_after(tokens: Sequence[Token], place: int) -> tuple[frozenset[str], int]:
    """Return the words of a bound after a number or unit, and the place after these words."""
    match texts(tokens, place, place + 2):
        case ["+" | "plus", *_]:
            return WORDS["least"], place + 1
        case ["-" | "or", bound] if bound in _OR_MORE:
            return WORDS["least"], place + 2
        case ["or", bound] if bound in WORDS["below"]:
            return WORDS["most"], place + 2
        case ["at", bound] if bound in WORDS["least"] | WORDS["most"]:
            return frozenset([bound]), place + 2
        case [bound, *_] if bound in _MARKS_AFTER:
            return frozenset([bound]), place + 1
        case _:
            return frozenset(), place
