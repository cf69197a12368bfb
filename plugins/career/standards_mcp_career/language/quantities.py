"""Find quantities, such as "five years" or "at least 10 people", and compare them.

    measured:  number [-] unit [a unit]       five years, five-year, $5 million, 30 hours a week
    counted:   number [-] noun                ten nurses, 12-person team
    held:      noun of number [noun]          a team of ten, a team of ten nurses
    version:   Name number                    Angular 15, Angular 12+

A team of ten is not the same as ten teams. Other numbers are names, such as ISO 9001, or ambiguous,
such as 3/4 and "5 of 10".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from .numbers import Number, number_at, number_value
from .tokens import UNITS, WORDS, Token, stem, texts

_CALENDAR_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_PER: Final = frozenset(("/", "a", "an", "each", "every", "per", "pro"))
_NOT_NAMES: Final = WORDS["label"] | WORDS["generic"] | UNITS.keys()
_FILLER: Final = frozenset(("-", "full"))
_MAX_NOUN_WORDS: Final = 3
TIME_DIMENSIONS: Final = frozenset(("second", "month"))
_MONEY: Final = frozenset(("dollar", "euro", "pound"))
_MAX_USED_BY_WORDS: Final = 5
# "Up to ten years" proves no minimum. "Teams of up to ten" does: the largest team had ten people.
_LIMITS: Final = WORDS["above"] | WORDS["below"]
_UP_TO_LIMITS: Final = frozenset(("second", "month", "percent"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its noun, as a range of possible values.

    Attributes:
        low: The smallest value: 0 after "under" or "at most".
        high: The greatest value: infinite after "at least".
        nouns: The stems of all nouns that are counted, or the dimension of the unit. The noun
            of a group begins with "of:", as in "a team of ten".
        wanted: The nouns of which a claim must count one to meet the requirement.
        rate: The unit in "a week" or "per minute".
        text: The words of the quantity in lower case.
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


class Mention(NamedTuple):
    """A quantity, and where it is in a clause.

    Attributes:
        start: The place of the first token, such as "at" in "at least five years".
        end: The place after the number and unit, before the noun.
        holder: The place of the noun that has it, such as "team" in "a team of five".
        is_attribute: True for "five-year", which describes the noun that follows.
        is_version: True for "Angular 15", whose number is a name, too.
    """

    quantity: Quantity
    start: int
    end: int
    holder: int | None = None
    is_attribute: bool = False
    is_version: bool = False


def quantity_at(tokens: Sequence[Token], place: int) -> tuple[Mention | None, int]:
    """Return the quantity whose number is at a place, and the place after its number and unit.

    The quantity is None for a number that is a name, as in "ISO 9001" or "level 3", for a number
    without a noun, for an age, and for a span, such as "the past 30 years".
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
        is_span = UNITS[words[0]][0] in TIME_DIMENSIONS and _is_span(tokens, number.start, end)
        if is_span or _is_part(tokens, number.place):
            return None, end
        measured = _measured(tokens, number, words[0], end)
        return measured, measured.end
    if not words and (version := _version(tokens, number)):
        return version, number.end
    is_doubtful = tokens[place].text == "one" or _is_part(tokens, number.place)
    if is_doubtful or _is_name(tokens, place):
        return None, place + 1
    return _counted(tokens, number, words, start), start


def _measured(tokens: Sequence[Token], number: Number, unit: str, end: int) -> Mention:
    """Return a quantity with a unit that ends before the place *end*."""
    dimension, factor = UNITS[unit]
    is_singular = f"{unit}s" in UNITS
    is_attribute = is_singular and (tokens[end - 2].text == "-" or number.low != 1)
    rate, number = _rate(tokens, end), number.bounded_at(tokens, end)
    low, high = number.bounds(up_to_is_limit=dimension in _UP_TO_LIMITS)
    nouns, text = (dimension,), _text(tokens[number.place : number.end])
    quantity = Quantity(low * factor, high * factor, nouns, nouns, rate, text)
    holder = _holder(tokens, number.start)
    if holder is None and dimension in _MONEY and tokens[number.start].text in _LIMITS:
        holder = _noun(tokens, number.start - 1)  # budgets over $1 million
    return Mention(quantity, number.start, number.end, holder, is_attribute)


def _version(tokens: Sequence[Token], number: Number) -> Mention | None:
    """Return the number of a name as a quantity: 15 in "Angular 15"."""
    name = _noun(tokens, number.place - 1)
    token = tokens[number.place]
    is_whole = token.text.isdecimal() and number.low == number.high
    if name is None or not is_whole or _CALENDAR_YEAR.fullmatch(token.text):
        return None
    noun = tokens[name]
    if noun.written.islower() or noun.text in _NOT_NAMES:
        return None
    low, high = number.bounds(up_to_is_limit=True)
    nouns, text = (f"version:{stem(noun.text)}",), _text(tokens[number.place : number.end])
    quantity = Quantity(low, high, nouns, nouns, None, text)
    return Mention(quantity, number.start, number.end, is_version=True)


def _counted(
    tokens: Sequence[Token], number: Number, words: Sequence[str], start: int
) -> Mention | None:
    """Return a quantity of things, whose noun starts at a place; None without a noun.

    In "ten shop windows", windows are counted, not shops. "A team of ten" counts its members, and
    so does "a team of ten people" and "a ten-person team".
    """
    holder = _holder(tokens, number.start)
    if len(words) > 1 and tokens[number.end].text == "-":
        words, held = words[:1], [words[1]]
    else:
        held = [] if holder is None else [tokens[holder].text]
    if not words and holder is None:
        return None
    counted = [word for word in words if word.endswith("s")] or list(words)
    every = [*map(stem, counted), *(f"of:{stem(word)}" for word in held)]
    wanted = every if not words or counted[-1] in WORDS["anybody"] else [stem(counted[-1])]
    low, high = number.bounds(up_to_is_limit=False)
    first, last = (number.place, start + 1) if words else (holder or 0, start)
    quantity = Quantity(
        low,
        high,
        tuple(every),
        tuple(wanted),
        _rate(tokens, start + len(words)),
        _text(tokens[first:last]),
    )
    return Mention(quantity, number.start, start, holder)


def _text(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens).replace(" - ", "-").replace(" +", "+")


def _nouns(tokens: Sequence[Token], start: int) -> tuple[list[str], int]:
    """Return the words of a noun at a place, or a unit alone, and the place after the words."""
    words = list[str]()
    for place, token in enumerate(tokens[start : start + _MAX_NOUN_WORDS], start):
        if token.text in UNITS:
            return [token.text], place + 1
        if not token.is_noun or number_value(token) is not None:
            break
        words.append(token.text)
    return words, start + len(words)


def _holder(tokens: Sequence[Token], start: int) -> int | None:
    """Return the place of the noun before "of" and a quantity."""
    return _noun(tokens, start - 2) if start and tokens[start - 1].is_a("tie") else None


def _noun(tokens: Sequence[Token], place: int) -> int | None:
    """Return the place if it may have a noun, else None."""
    return place if place >= 0 and tokens[place].is_noun else None


def _is_span(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Return True for an age or a time span that measures something else.

    "Kept for ten years" and "used by clients for ten years" are such spans, too.
    """
    after = texts(tokens, end, end + 2)
    follower = after[-1] if after[:1] == ["-"] else after[0] if after else ""
    before = texts(tokens, start - _MAX_USED_BY_WORDS, start)
    is_used_by = before[-1:] == ["for"] and ("used", "by") in pairwise(before)
    if before and before[-1] in ("for", "in"):
        before.pop()
    return follower in WORDS["age"] or is_used_by or (bool(before) and before[-1] in WORDS["span"])


def _is_part(tokens: Sequence[Token], place: int) -> bool:
    """Return True for the last number of "3/4", "5 of 10" and "a quarter of five"."""
    if place < 2 or tokens[place - 1].text not in ("/", "of"):  # noqa: PLR2004
        return False
    before = tokens[place - 2]
    return number_value(before) is not None or before.is_a("fraction")


def _rate(tokens: Sequence[Token], place: int) -> tuple[str, int] | None:
    following = texts(tokens, place, place + 2)
    is_rate = len(following) > 1 and following[0] in _PER
    return UNITS.get(following[1]) if is_rate else None


def _is_name(tokens: Sequence[Token], place: int) -> bool:
    token, before = tokens[place], tokens[place - 1] if place else None
    if _CALENDAR_YEAR.fullmatch(token.text):
        return True
    if before is None or before.kind != "word":
        return False
    if before.is_a("label"):
        return True
    is_capital = before.written[0].isupper() and (place > 1 or before.written.isupper())
    return is_capital and token.kind == "number"
