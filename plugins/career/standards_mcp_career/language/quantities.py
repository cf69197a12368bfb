"""Find quantities, such as "five years" or "at least 10 people", and compare them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .lexicon import AGES, GENERIC_WORDS, LABELS, SPANS, STOP_WORDS, TIES, UNITS
from .numbers import Number, number_at, number_value
from .stems import stem
from .tokens import Token

_CALENDAR_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_PER: Final = frozenset(("/", "a", "an", "each", "every", "per", "pro"))
_FILLER: Final = frozenset(("-", "full"))
_NOUN_WORDS: Final = 3
_UP_TO_LIMITS: Final = frozenset(("second", "month", "percent"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its noun, as the values that a text leaves possible.

    Attributes:
        low: The smallest value: 0 after "under" or "at most".
        high: The greatest value: infinite after "at least".
        nouns: The stems of all nouns that are counted, or the dimension of the unit.
        wanted: The nouns of which a claim must count one.
        rate: The unit in "a week" or "per minute".
        text: As written, in lower case.
    """

    low: float
    high: float
    nouns: tuple[str, ...]
    wanted: tuple[str, ...]
    rate: tuple[str, int] | None
    text: str

    def is_met_by(self, other: Quantity) -> bool:
        """Return True if a quantity of a claim meets this one of a requirement.

        "At most ten" proves no minimum, and "at least three" no maximum.
        """
        if self.rate not in (None, other.rate) or not set(self.wanted).intersection(other.nouns):
            return False
        return other.low >= self.low if self.low else other.high <= self.high


class Found(NamedTuple):
    """A quantity, and where it is in a clause.

    Attributes:
        start: The place of its first token, such as "at" in "at least five years".
        end: The place after its number and unit. A noun that is no unit follows.
        holder: The place of the noun that has it, such as "team" in "a team of five".
        is_attribute: True for "five-year", which describes the noun that follows.
    """

    quantity: Quantity
    start: int
    end: int
    holder: int | None = None
    is_attribute: bool = False


def quantity_at(tokens: Sequence[Token], place: int) -> tuple[Found | None, int]:
    """Return the quantity whose number is at a place, and the place after its number and unit.

    None for a number that is a name, as in "ISO 9001" or "level 3", for one without a noun, for
    an age, and for a span, such as "the past 30 years".
    """
    number = number_at(tokens, place)
    start = number.end
    while start < len(tokens) and tokens[start].text in _FILLER:
        start += 1
    words, end = _nouns(tokens, start)
    sign = tokens[place - 1].text if place else ""
    if sign in UNITS and sign != "%":
        words, end = [sign], number.end
    if len(words) == 1 and words[0] in UNITS:
        if _is_span(tokens, number.start, end):
            return None, end
        measured = _measured(tokens, number, words[0], end)
        return measured, measured.end
    if _is_name(tokens, place) or tokens[place].text == "one":
        return None, place + 1
    return _counted(tokens, number, words, start), start


def _measured(tokens: Sequence[Token], number: Number, unit: str, end: int) -> Found:
    """Return a quantity with a unit, which ends at a place."""
    dimension, factor = UNITS[unit]
    is_singular = f"{unit}s" in UNITS
    is_attribute = is_singular and (tokens[end - 2].text == "-" or number.low != 1)
    rate, number = _rate(tokens, end), number.bounded_at(tokens, end)
    low, high = number.bounds(up_to_is_limit=dimension in _UP_TO_LIMITS)
    nouns, text = (dimension,), _text(tokens[number.place : number.end])
    quantity = Quantity(low * factor, high * factor, nouns, nouns, rate, text)
    holder = _holder(tokens, number.start)
    return Found(quantity, number.start, number.end, holder, is_attribute)


def _counted(
    tokens: Sequence[Token], number: Number, words: Sequence[str], start: int
) -> Found | None:
    """Return a quantity of things, whose noun starts at a place; None without a noun.

    In "ten shop windows" windows are counted, no shops. "A team of ten" counts its members, and
    so does "a team of ten people".
    """
    holder = _holder(tokens, number.start)
    if not words and holder is None:
        return None
    counted = [word for word in words if word.endswith("s")] or list(words)
    every = counted if holder is None else [*counted, tokens[holder].text]
    wanted = counted[-1:] if words and counted[-1] not in GENERIC_WORDS else every
    low, high = number.bounds(up_to_is_limit=False)
    first, last = (number.place, start + 1) if words else (holder or 0, start)
    quantity = Quantity(
        low,
        high,
        tuple(map(stem, every)),
        tuple(map(stem, wanted)),
        _rate(tokens, start + len(words)),
        _text(tokens[first:last]),
    )
    return Found(quantity, number.start, start, holder)


def _text(tokens: Sequence[Token]) -> str:
    return " ".join(each.text for each in tokens).replace(" - ", "-").replace(" +", "+")


def _nouns(tokens: Sequence[Token], start: int) -> tuple[list[str], int]:
    """Return the words of the noun, or its unit alone, and the place after them."""
    words = list[str]()
    for place, token in enumerate(tokens[start : start + _NOUN_WORDS], start):
        if token.text in UNITS:
            return [token.text], place + 1
        if token.kind != "word" or token.text in STOP_WORDS or number_value(token) is not None:
            break
        words.append(token.text)
    return words, start + len(words)


def _holder(tokens: Sequence[Token], start: int) -> int | None:
    """Return the place of the noun before "of" and a quantity."""
    if start < 2 or tokens[start - 1].text not in TIES:  # noqa: PLR2004
        return None
    noun = tokens[start - 2]
    return start - 2 if noun.kind == "word" and noun.text not in STOP_WORDS else None


def _is_span(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Return True for an age, or a span of time, in which something else may have happened."""
    after = [each.text for each in tokens[end : end + 2]]
    follower = after[-1] if after[:1] == ["-"] else after[0] if after else ""
    return follower in AGES or (start > 0 and tokens[start - 1].text in SPANS)


def _rate(tokens: Sequence[Token], place: int) -> tuple[str, int] | None:
    following = [each.text for each in tokens[place : place + 2]]
    is_rate = len(following) > 1 and following[0] in _PER
    return UNITS.get(following[1]) if is_rate else None


def _is_name(tokens: Sequence[Token], place: int) -> bool:
    token, before = tokens[place], tokens[place - 1] if place else None
    if _CALENDAR_YEAR.fullmatch(token.text):
        return True
    if before is None or before.kind != "word":
        return False
    if before.text in LABELS:
        return True
    is_capital = before.written[0].isupper() and (place > 1 or before.written.isupper())
    return is_capital and token.kind == "number"
