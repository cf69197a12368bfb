"""Find quantities, such as "five years" or "10 or more people", and compare them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .lexicon import LABELS, LIMITS, MULTIPLES, NUMBERS, STOP_WORDS, UNITS
from .stems import stem
from .tokens import Token

_THOUSANDS: Final = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_CALENDAR_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_RANGE: Final = frozenset(("-", "\u2013", "to", "bis"))
_AGES: Final = frozenset(("old", "olds", "ago"))  # of a patient or a company, not of experience
_NOUN_WORDS: Final = 3
_COMPARATOR_WORDS: Final = 3
_NUMBER_TOKENS: Final = 3  # two hundred thousand; a chain of any length would take for ever


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its noun.

    Attributes:
        nouns: The stems of the words after the number, or the dimension of its unit alone.
        is_limit: True after "under" or "within".
        text: As written, in lower case.
    """

    value: float
    nouns: tuple[str, ...]
    is_limit: bool
    text: str

    def is_met_by(self, other: Quantity) -> bool:
        """Return True if a quantity of a claim meets this one of a requirement."""
        if self.nouns[-1] not in other.nouns:
            return False
        if self.is_limit:
            return other.value <= self.value
        return other.value >= self.value and not other.is_limit


def number_value(token: Token) -> float | None:
    """Return the number that a token is, or None."""
    if token.kind == "number":
        digits = token.text
        if _THOUSANDS.fullmatch(digits):
            return float(re.sub("[.,]", "", digits))
        whole, *rest = re.split("[.,]", digits)
        return float(f"{whole}.{''.join(rest) or 0}")
    return float(NUMBERS[token.text]) if token.text in NUMBERS else None


def quantity_at(tokens: Sequence[Token], start: int) -> tuple[Quantity | None, int]:
    """Return the quantity that begins at a place, and the place after its number and unit.

    The words of a noun that is no unit stay for the reader. None for a number that is a name, as
    in "ISO 9001" or "level 3", and for one without a noun.
    """
    if tokens[start].text in ("decade", "decades"):
        value, place = 1.0, start
    else:
        value, place = _number(tokens, start)
    place = _after_filler(tokens, place)
    nouns, end = _nouns(tokens, place)
    sign = tokens[start - 1].text if start and tokens[start - 1].kind == "sign" else ""
    if sign in UNITS and sign != "%":
        nouns, end = [sign], place
    if len(nouns) == 1 and nouns[0] in UNITS:
        if end < len(tokens) and tokens[end].text in _AGES:
            return None, start + 1
        dimension, factor = UNITS[nouns[0]]
        nouns, value = [dimension], value * factor
    elif not nouns or _is_name(tokens, start) or tokens[start].text == "one":
        return None, start + 1
    else:
        nouns, end = [stem(each) for each in nouns], place
    before = tokens[max(0, start - _COMPARATOR_WORDS) : start]
    is_limit = any(each.text in LIMITS for each in before)
    text = " ".join(each.text for each in tokens[start : max(end, place + 1)])
    text = text.replace(" - ", "-").replace(" +", "+")
    return Quantity(value, tuple(nouns), is_limit, text), end


def _number(tokens: Sequence[Token], start: int) -> tuple[float, int]:
    value, place = number_value(tokens[start]) or 0.0, start + 1
    for _ in range(_NUMBER_TOKENS):
        following = tokens[place : place + 2]
        if not following:
            break
        if following[0].text in MULTIPLES:
            value, place = value * MULTIPLES[following[0].text], place + 1
            continue
        number = number_value(following[1]) if len(following) > 1 else None
        if number is None or following[0].text not in _RANGE:
            break
        if tokens[start].kind == "word" and value % 10 == 0 and number < 10:  # noqa: PLR2004
            value += number  # twenty-five
        place += 2  # else the first number of a range counts
    return value, place


def _after_filler(tokens: Sequence[Token], place: int) -> int:
    filler = ("+", "-", "or", "more", "plus", "full")
    for token in tokens[place : place + _NUMBER_TOKENS]:
        if token.text not in filler:
            break
        place += 1
    return place


def _nouns(tokens: Sequence[Token], start: int) -> tuple[list[str], int]:
    """Return the words of the noun, or its unit alone."""
    found = list[str]()
    for place, token in enumerate(tokens[start : start + _NOUN_WORDS], start):
        if token.text in UNITS:
            return [token.text], place + 1
        if token.kind != "word" or token.text in STOP_WORDS or number_value(token) is not None:
            break
        found.append(token.text)
    return found, start + len(found)


def _is_name(tokens: Sequence[Token], start: int) -> bool:
    token, before = tokens[start], tokens[start - 1] if start else None
    if token.kind != "number":
        return False
    if _CALENDAR_YEAR.fullmatch(token.text):
        return True
    if before is None or before.kind != "word":
        return False
    is_capital = before.written[0].isupper() and (start > 1 or before.written.isupper())
    return before.text in LABELS or is_capital
